-- What is spent of a budget, in units of 10^-12; NULL where that is not certain, which never means that nothing is.
-- It is uncertain where the counter is gone, was never set (replication leaves sequences out, a restart resets them),
-- would be lost in a crash, or lies below what the journal has seen.
CREATE OR REPLACE FUNCTION sqlrs.spent_units(budget_kind text, budget_name text, counter regclass)
RETURNS bigint
LANGUAGE sql
VOLATILE
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
  SELECT counted.units
  FROM (
    SELECT pg_sequence_last_value(class.oid::regclass) AS units
    FROM pg_class AS class
    WHERE class.oid = counter AND class.relkind = 'S' AND class.relpersistence = 'p'
  ) AS counted
  WHERE counted.units >= sqlrs.recorded_units(budget_kind, budget_name)
$sqlrs$;
