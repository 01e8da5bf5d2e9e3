-- A ledger from before it had a schema of its own, found on the search path, moves in with all that is spent.
DO $sqlrs$
BEGIN
  IF to_regclass('sqlrs_ledger.sqlrs_budgets') IS NULL AND to_regclass('sqlrs_budgets') IS NOT NULL THEN
    ALTER TABLE sqlrs_budgets SET SCHEMA sqlrs_ledger;
    ALTER TABLE sqlrs_releases SET SCHEMA sqlrs_ledger;
  END IF;
END
$sqlrs$
