-- Sets the cap of an analyst (a role that logs in) or of a dataset. What is spent stays spent.
CREATE OR REPLACE FUNCTION sqlrs.grant_budget(budget_kind text, budget_name text, budget_cap numeric)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
BEGIN
  UPDATE sqlrs.budgets SET cap = budget_cap WHERE kind = budget_kind AND name = budget_name;
  IF NOT FOUND THEN
    INSERT INTO sqlrs.budgets (kind, name, cap, spent)
    VALUES (budget_kind, budget_name, budget_cap, sqlrs.counter(budget_kind, budget_name));
  END IF;
END
$sqlrs$;
