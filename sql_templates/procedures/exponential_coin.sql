-- True with probability exp(-numerator / denominator), exactly; the exponent is at most 1.
CREATE OR REPLACE FUNCTION sqlrs.exponential_coin(numerator numeric, denominator numeric)
RETURNS boolean
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  times integer := 1;
BEGIN
  WHILE sqlrs.integer_below(denominator * times) < numerator LOOP
    times := times + 1;
  END LOOP;
  RETURN times % 2 = 1;
END
$sqlrs$;
