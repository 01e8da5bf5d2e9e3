-- Sets the cap of an analyst (a role that logs in) or of a dataset. What is spent stays spent.
CREATE OR REPLACE FUNCTION sqlrs.grant_budget(budget_kind text, budget_name text, budget_cap numeric)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
BEGIN
  IF (budget_kind IN ('analyst', 'dataset') AND budget_name <> '') IS NOT TRUE THEN
    RAISE EXCEPTION 'a budget is that of an analyst or of a dataset with a name'
    USING ERRCODE = '22023', HINT = 'such as sqlrs.grant_budget(''analyst'', ''ada'', 8)';
  END IF;
  IF (budget_cap BETWEEN 0 AND 1000000 AND budget_cap = round(budget_cap, 12)) IS NOT TRUE THEN
    RAISE EXCEPTION 'a budget must be a decimal number from 0 to 1000000'
    USING ERRCODE = '22023', HINT = 'the total over all time, with at most 12 decimals, such as 10 or 0.5';
  END IF;
  UPDATE sqlrs.budgets SET cap = budget_cap WHERE kind = budget_kind AND name = budget_name;
  IF NOT FOUND THEN
    INSERT INTO sqlrs.budgets (kind, name, cap, spent)
    VALUES (budget_kind, budget_name, budget_cap, sqlrs.counter(budget_kind, budget_name));
  END IF;
END
$sqlrs$;
