-- The coefficients of the ceiling for the given values. The program lists for each its constant, the number of its
-- terms, and for each term the place of a value and how often it counts.
CREATE OR REPLACE FUNCTION sqlrs.coefficients(program integer[], t numeric[])
RETURNS numeric[]
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  found numeric[] := ARRAY[]::numeric[];
  at integer := 1;
  terms integer;
  total numeric;
BEGIN
  WHILE at <= cardinality(program) LOOP
    total := program[at];
    terms := program[at + 1];
    FOR i IN 1..terms LOOP
      total := total + t[program[at + 2 * i]] * program[at + 2 * i + 1];
    END LOOP;
    at := at + 2 + 2 * terms;
    found := found || total;
  END LOOP;
  RETURN found;
END
$sqlrs$;
