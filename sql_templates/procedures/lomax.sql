-- Lomax noise for so many numbers at once, of the sensitivity numerator / 2^places: whole numbers, exactly of the law.
-- With M_0 = 1 and M_i = M_(i-1) * U_i^(-1 / (shape + i - 1)) for independent uniform U_i, the sizes are the scale times
-- M_i - M_(i-1), rounded to the nearest whole number. All is enclosed between two ends; where the two round to
-- different numbers, more bits are drawn and all is enclosed anew, more closely. docs/proofs/lomax.md has the law.
CREATE OR REPLACE FUNCTION sqlrs.lomax(numerator numeric, places integer, ratio numeric, epsilon numeric, size integer)
RETURNS numeric[]
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  shape CONSTANT integer := 5 * size;
  pull CONSTANT numeric := sqlrs.lomax_pull(epsilon, size, ratio);
  -- The scale is above / below.
  above CONSTANT numeric := numerator * sqlrs.whole_power(2, 64);
  below CONSTANT numeric := sqlrs.whole_power(2, places) * pull;
  word CONSTANT numeric := sqlrs.whole_power(2, 128);
  uniforms numeric[] := ARRAY[]::numeric[];
  length integer := 128;
  digits integer;
  one numeric;
  fewest record;
  most record;
  log_low numeric;
  log_high numeric;
  before_low numeric;
  before_high numeric;
  low numeric;
  high numeric;
  near numeric;
  sizes numeric[];
  decided boolean := false;
BEGIN
  IF numerator = 0 THEN
    RETURN array_fill(0::numeric, ARRAY[size]);
  END IF;
  IF (numerator > 0 AND pull >= 1 AND above + below < 'Infinity' AND size >= 1) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no noise for such a sensitivity';
  END IF;
  FOR i IN 1..size LOOP
    uniforms[i] := sqlrs.random_word();
  END LOOP;
  -- So many places that the scale leaves more than a hundred of them.
  digits := 160 + 4 * char_length(div(above, below)::text);
  WHILE NOT decided LOOP
    one := sqlrs.whole_power(2, digits);
    log_low := 0;
    log_high := 0;
    before_low := one;
    before_high := one;
    sizes := ARRAY[]::numeric[];
    decided := true;
    FOR i IN 1..size LOOP
      IF uniforms[i] = 0 THEN
        decided := false;
        EXIT;
      END IF;
      -- -ln U at both ends of the interval that holds U.
      fewest := sqlrs.minus_logarithm(uniforms[i] + 1, length, digits);
      most := sqlrs.minus_logarithm(uniforms[i], length, digits);
      log_low := log_low + div(fewest.low, shape + i - 1);
      log_high := log_high + div(most.high + shape + i - 2, shape + i - 1);
      fewest := sqlrs.negative_exponential(log_low, one, digits);
      most := sqlrs.negative_exponential(log_high, one, digits);
      IF most.low <= 0 THEN
        decided := false;
        EXIT;
      END IF;
      low := greatest(one, div(one * one, fewest.high));
      high := div(one * one + most.low - 1, most.low);
      -- floor(scale * (M_i - M_(i-1)) + 1/2) at both ends.
      near := div(2 * above * greatest(0, low - before_high) + below * one, 2 * below * one);
      IF near <> div(2 * above * (high - before_low) + below * one, 2 * below * one) THEN
        decided := false;
        EXIT;
      END IF;
      sizes[i] := near;
      before_low := low;
      before_high := high;
    END LOOP;
    IF NOT decided THEN
      FOR i IN 1..size LOOP
        FOR j IN 1..length / 128 LOOP
          uniforms[i] := uniforms[i] * word + sqlrs.random_word();
        END LOOP;
      END LOOP;
      length := 2 * length;
      digits := 2 * digits;
    END IF;
  END LOOP;
  FOR i IN 1..size LOOP
    IF sizes[i] > 0 AND mod(sqlrs.random_word(), 2) = 1 THEN
      sizes[i] := -sizes[i];
    END IF;
  END LOOP;
  RETURN sizes;
END
$sqlrs$;
