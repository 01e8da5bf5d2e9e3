-- Polynomials above every bound at distance k: for each row of answers the coefficients of binomial(k, 0..degree).
-- The program lists, for each value in order and then for each answer, its constant, the number of its terms and
-- the terms: places of values before it, whose polynomials it adds, a value's one degree higher than an answer's.
CREATE OR REPLACE FUNCTION sqlrs.ceiling(program integer[], degree integer, t numeric[])
RETURNS numeric[]
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  width CONSTANT integer := degree + 1;
  of numeric[] := ARRAY[]::numeric[];
  answers numeric[] := ARRAY[]::numeric[];
  at integer := 1;
  value integer := 1;
  sums numeric[];
BEGIN
  WHILE at <= cardinality(program) LOOP
    sums := array_fill(0::numeric, ARRAY[width + 1]);
    sums[1] := program[at];
    FOR i IN at + 2..at + 1 + program[at + 1] LOOP
      FOR j IN 1..width LOOP
        sums[j] := sums[j] + of[(program[i] - 1) * width + j];
      END LOOP;
    END LOOP;
    at := at + 2 + program[at + 1];
    IF value <= cardinality(t) THEN
      of := of || t[value] || sums[1:degree];
    ELSE
      answers := answers || sums[1:width];
    END IF;
    value := value + 1;
  END LOOP;
  RETURN answers;
END
$sqlrs$;
