-- The most that the journal has seen spent of a budget, in units of 10^-12; 0 where it has no line of it.
CREATE OR REPLACE FUNCTION sqlrs.recorded_units(budget_kind text, budget_name text)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
  SELECT greatest(
    0,
    (SELECT max(analyst_spent) FROM sqlrs.releases WHERE budget_kind = 'analyst' AND analyst = budget_name),
    (SELECT max(dataset_spent) FROM sqlrs.releases WHERE budget_kind = 'dataset' AND dataset = budget_name)
  )
$sqlrs$;
