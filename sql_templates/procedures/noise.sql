-- Polylaplace noise for the sensitivity numerator / 2^places, a whole number drawn from the exact law.
-- One uniform number is drawn, 128 bits at a time and only as many as decide; the size is the largest k with
-- uniform < P(size >= k), found by doubling, then by bisection. docs/proofs/sampler.md has the law and the proof.
CREATE OR REPLACE FUNCTION sqlrs.noise(numerator numeric, places integer, ratio numeric, shape integer)
RETURNS numeric
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  -- lambda = sensitivity / (2 (r - 1)); probabilities are taken at (2k - 1) / (2 lambda) = (2k - 1) * step / unit.
  unit CONSTANT numeric := numerator * sqlrs.whole_power(2, 40);
  step CONSTANT numeric := sqlrs.whole_power(2, places) * (ratio - sqlrs.whole_power(2, 40));
  power CONSTANT numeric := sqlrs.whole_power(shape, shape);
  less CONSTANT numeric := sqlrs.whole_power(shape - 1, shape - 1);
  more CONSTANT numeric := sqlrs.whole_power(shape + 1, shape + 1);
  whole CONSTANT numeric := power + 2 * less;
  unit_power CONSTANT numeric := sqlrs.whole_power(unit, shape);
  word CONSTANT numeric := sqlrs.whole_power(2, 128);
  uniform numeric;
  scale numeric := word;
  low numeric := 0;
  high numeric;
  middle numeric;
  doubling boolean := true;
  x numeric;
  chance numeric;
  chances numeric;
  reaches boolean;
BEGIN
  IF numerator = 0 THEN
    RETURN 0;
  END IF;
  IF (unit > 0 AND step > 0 AND unit + step < 'NaN' AND shape > 1) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no noise for such a sensitivity';
  END IF;
  uniform := sqlrs.random_word();
  high := div(unit, 2 * step) + 1;
  WHILE doubling OR high - low > 1 LOOP
    middle := CASE WHEN doubling THEN high ELSE div(low + high, 2) END;
    x := (2 * middle - 1) * step;
    IF shape * x <= unit THEN
      chance := power * sqlrs.whole_power(unit - x, shape) + 2 * less * unit_power;
      chances := whole * unit_power;
    ELSE
      chance := less * more * unit_power;
      chances := power * whole * sqlrs.whole_power(unit + x, shape);
    END IF;
    LOOP
      -- The uniform number lies between uniform / scale and (uniform + 1) / scale.
      reaches := (uniform + 1) * chances <= chance * scale;
      EXIT WHEN reaches OR uniform * chances >= chance * scale;
      uniform := uniform * word + sqlrs.random_word();
      scale := scale * word;
    END LOOP;
    IF reaches THEN
      low := middle;
      IF doubling THEN
        high := 2 * high;
      END IF;
    ELSE
      high := middle;
      doubling := false;
    END IF;
  END LOOP;
  IF low > 0 AND mod(sqlrs.random_word(), 2) = 1 THEN
    RETURN -low;
  END IF;
  RETURN low;
END
$sqlrs$;
