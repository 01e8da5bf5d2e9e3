-- Removes one function. The ledger stays: what was spent remains spent.
DROP FUNCTION IF EXISTS sqlrs.{function};
DELETE FROM sqlrs.queries WHERE name = {name};
