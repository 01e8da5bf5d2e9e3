-- One step: how far the numbers T_E can grow when one row of a table changes, for each set E of tables
--   min(T_E + the greatest gain of E, the product of the grown values of E's factors).
-- The program between two places lists the moves: target; number of gains; for each gain its constant, the number
-- of its terms and the terms; number of factors, -1 for no product; the factors. Targets, terms and factors are
-- places in the vector. A factor stands before its product.
CREATE OR REPLACE FUNCTION sqlrs.grow(program integer[], first integer, last integer, t numeric[])
RETURNS numeric[]
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  grown numeric[] := t;
  at integer := first;
  target integer;
  gains integer;
  listed integer;
  total numeric;
  most numeric;
BEGIN
  WHILE at <= last LOOP
    target := program[at];
    gains := program[at + 1];
    at := at + 2;
    most := 0;
    FOR gain IN 1..gains LOOP
      total := program[at];
      listed := program[at + 1];
      FOR i IN at + 2..at + 1 + listed LOOP
        total := total + t[program[i]];
      END LOOP;
      IF total > most THEN
        most := total;
      END IF;
      at := at + 2 + listed;
    END LOOP;
    most := most + t[target];
    listed := program[at];
    at := at + 1;
    IF listed >= 0 THEN
      total := 1;
      FOR i IN at..at + listed - 1 LOOP
        total := total * grown[program[i]];
      END LOOP;
      IF total < most THEN
        most := total;
      END IF;
      at := at + listed;
    END IF;
    grown[target] := most;
  END LOOP;
  RETURN grown;
END
$sqlrs$;
