-- The sequence that counts what is spent of a budget. Its name follows from the budget's, so a budget whose row was
-- deleted finds its counter again. A new one starts at what the journal has seen.
CREATE OR REPLACE FUNCTION sqlrs.counter(budget_kind text, budget_name text)
RETURNS regclass
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  digest CONSTANT text := encode(sha256(convert_to(budget_kind || ' ' || budget_name, 'UTF8')), 'hex');
  counter CONSTANT text := format('sqlrs.%I', 'spent_' || left(digest, 40));
BEGIN
  IF to_regclass(counter) IS NULL THEN
    EXECUTE format('CREATE SEQUENCE %s MINVALUE 0 START WITH 0', counter);
    PERFORM setval(counter::regclass, sqlrs.recorded_units(budget_kind, budget_name));
  END IF;
  RETURN counter::regclass;
END
$sqlrs$;
