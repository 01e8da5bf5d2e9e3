-- Says what is spent of a budget whose counter was lost or reset, for the owner. It never goes down: neither below the
-- counter nor below what the journal has seen.
CREATE OR REPLACE FUNCTION sqlrs.restore_spent(budget_kind text, budget_name text, budget_spent numeric)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
DECLARE
  counter regclass;
  least_units bigint;
BEGIN
  PERFORM 1 FROM sqlrs.budgets WHERE kind = budget_kind AND name = budget_name FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no budget of % %', budget_kind, budget_name
    USING ERRCODE = '22023', HINT = 'sqlrs.grant_budget(kind, name, cap) makes one';
  END IF;
  SELECT class.oid::regclass INTO counter
  FROM sqlrs.budgets AS budget
  JOIN pg_class AS class ON class.oid = budget.spent AND class.relkind = 'S' AND class.relpersistence = 'p'
  WHERE budget.kind = budget_kind AND budget.name = budget_name;
  IF NOT FOUND THEN
    counter := sqlrs.counter(budget_kind, budget_name);
    UPDATE sqlrs.budgets SET spent = counter WHERE kind = budget_kind AND name = budget_name;
  END IF;
  least_units := greatest(sqlrs.recorded_units(budget_kind, budget_name), pg_sequence_last_value(counter));
  IF (budget_spent BETWEEN least_units * 1e-12 AND 1000000 AND budget_spent = round(budget_spent, 12)) IS NOT TRUE THEN
    RAISE EXCEPTION 'what is spent of % % is from % to 1000000', budget_kind, budget_name,
      trim_scale(least_units * 1e-12)
    USING ERRCODE = '22023', HINT = 'a decimal number with at most 12 decimals';
  END IF;
  PERFORM setval(counter, (budget_spent * 1e12)::bigint);
END
$sqlrs$;
