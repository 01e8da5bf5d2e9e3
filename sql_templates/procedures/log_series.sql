-- 2 artanh(numerator / denominator) from below and from above, in units of 2^-places, for a quotient from 0 to 1/3: the
-- sum of 2 (n/d)^(2k+1) / (2k+1), with every power and every term rounded down, and up. It is ln y for the quotient
-- (y - 1) / (y + 1). Once a power is at most one unit, all further terms together are less than one.
CREATE OR REPLACE FUNCTION sqlrs.log_series(
  numerator numeric,
  denominator numeric,
  places integer,
  OUT low numeric,
  OUT high numeric
)
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  one CONSTANT numeric := sqlrs.whole_power(2, places);
  least numeric := div(one * numerator, denominator);
  most numeric := div(one * numerator + denominator - 1, denominator);
  odd integer := 1;
BEGIN
  IF (numerator >= 0 AND denominator >= 3 * numerator AND denominator > 0 AND denominator < 'Infinity' AND places > 0
    AND numerator = trunc(numerator) AND denominator = trunc(denominator)) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no logarithm for such a quotient';
  END IF;
  low := 0;
  high := 0;
  LOOP
    low := low + div(least, odd);
    high := high + div(most + odd - 1, odd);
    EXIT WHEN most <= 1;
    least := div(div(least * numerator, denominator) * numerator, denominator);
    most := div(div(most * numerator + denominator - 1, denominator) * numerator + denominator - 1, denominator);
    odd := odd + 2;
  END LOOP;
  low := 2 * low;
  high := 2 * (high + 1);
END
$sqlrs$;
