-- A lower bound of e^(numerator / denominator) in units of 2^-160: the power series, every term rounded down.
CREATE OR REPLACE FUNCTION sqlrs.growth(numerator numeric, denominator numeric)
RETURNS numeric
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  term numeric := sqlrs.whole_power(2, 160);
  total numeric := term;
  place integer := 1;
BEGIN
  IF (numerator >= 0 AND denominator > 0 AND numerator + denominator < 'Infinity'
    AND numerator = trunc(numerator) AND denominator = trunc(denominator)) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no power for such an exponent';
  END IF;
  WHILE term > 0 LOOP
    term := div(term * numerator, denominator * place);
    total := total + term;
    place := place + 1;
  END LOOP;
  RETURN total;
END
$sqlrs$;
