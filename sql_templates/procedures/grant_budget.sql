-- Sets the cap of an analyst (a role that logs in) or of a dataset. What is spent stays spent.
CREATE OR REPLACE FUNCTION sqlrs.grant_budget(budget_kind text, budget_name text, budget_cap numeric)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
DECLARE
  counter text;
BEGIN
  UPDATE sqlrs.budgets SET cap = budget_cap WHERE kind = budget_kind AND name = budget_name;
  IF NOT FOUND THEN
    counter := format('spent_%s', replace(gen_random_uuid()::text, '-', ''));
    EXECUTE format('CREATE SEQUENCE sqlrs.%I MINVALUE 0 START WITH 0', counter);
    PERFORM setval(format('sqlrs.%I', counter)::regclass, 0);
    INSERT INTO sqlrs.budgets (kind, name, cap, spent)
    VALUES (budget_kind, budget_name, budget_cap, format('sqlrs.%I', counter)::regclass);
  END IF;
END
$sqlrs$;
