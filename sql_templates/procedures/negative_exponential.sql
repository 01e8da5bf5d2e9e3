-- exp(-numerator / denominator) from below and from above, in units of 2^-places. The exponent is halved until it is at
-- most 1, the power series of its opposite summed with every term rounded down and with every term rounded up, and the
-- inverses squared as often again. What is below the unit for certain is not computed.
CREATE OR REPLACE FUNCTION sqlrs.negative_exponential(
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
  halved numeric := denominator;
  halvings integer := 0;
  term integer := 1;
  least numeric := one;
  most numeric := one;
  least_sum numeric := one;
  most_sum numeric := one;
BEGIN
  IF (numerator >= 0 AND denominator > 0 AND numerator + denominator < 'Infinity' AND places > 0
    AND numerator = trunc(numerator) AND denominator = trunc(denominator)) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no power for such an exponent';
  END IF;
  IF numerator >= denominator * places THEN
    low := 0;
    high := 1;
    RETURN;
  END IF;
  WHILE numerator > halved LOOP
    halved := 2 * halved;
    halvings := halvings + 1;
  END LOOP;
  LOOP
    least := div(least * numerator, halved * term);
    most := div(most * numerator + halved * term - 1, halved * term);
    least_sum := least_sum + least;
    most_sum := most_sum + most;
    EXIT WHEN most <= 1;
    term := term + 1;
  END LOOP;
  -- All further terms together are at most the last one.
  most_sum := most_sum + most;
  low := div(one * one, most_sum);
  high := div(one * one + least_sum - 1, least_sum);
  FOR i IN 1..halvings LOOP
    low := div(low * low, one);
    high := div(high * high + one - 1, one);
  END LOOP;
END
$sqlrs$;
