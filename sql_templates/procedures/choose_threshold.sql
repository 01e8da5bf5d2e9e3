-- The number of a threshold, from 1 on, drawn with probability proportional to threshold^-3 * exp(-rate * above), where
-- above is the number of units that contribute more than it, and rate = numerator / denominator. Exactly: the weights
-- are enclosed by whole numbers, and one uniform number is drawn, 128 bits at a time. Where these do not decide,
-- the enclosures get narrower and the number longer. docs/proofs/procedures.md has the proof.
CREATE OR REPLACE FUNCTION sqlrs.choose_threshold(
  thresholds numeric[],
  above numeric[],
  numerator numeric,
  denominator numeric
)
RETURNS integer
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  size CONSTANT integer := cardinality(thresholds);
  word CONSTANT numeric := sqlrs.whole_power(2, 128);
  least_above CONSTANT numeric := above[size];
  last_cube CONSTANT numeric := sqlrs.whole_power(thresholds[size], 3);
  -- Small thresholds have large weights: as many places more as they have digits.
  places integer := 192 + 4 * length(last_cube::text);
  uniform numeric := sqlrs.random_word();
  scale numeric := word;
  power record;
  powers_above numeric;
  cube numeric;
  low numeric[];
  high numeric[];
  low_before numeric;
  high_before numeric;
  low_behind numeric;
  high_behind numeric;
BEGIN
  IF (size >= 1 AND size = cardinality(above) AND array_position(thresholds || above, NULL) IS NULL
    AND numerator > 0 AND denominator > 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no choice among such thresholds';
  END IF;
  FOR j IN 1..size LOOP
    IF (thresholds[j] = trunc(thresholds[j]) AND thresholds[j] < 'Infinity' AND above[j] = trunc(above[j])
      AND above[j] < 'Infinity' AND above[j] >= least_above
      AND thresholds[j] > CASE WHEN j = 1 THEN 0 ELSE thresholds[j - 1] END) IS NOT TRUE THEN
      RAISE EXCEPTION 'there is no choice among such thresholds';
    END IF;
  END LOOP;
  LOOP
    -- A factor that all weights have in common makes the last one 1.
    powers_above := NULL;
    low_behind := 0;
    high_behind := 0;
    FOR j IN 1..size LOOP
      IF above[j] IS DISTINCT FROM powers_above THEN
        power := sqlrs.negative_exponential((above[j] - least_above) * numerator, denominator, places);
        powers_above := above[j];
      END IF;
      cube := sqlrs.whole_power(thresholds[j], 3);
      low[j] := div(power.low * last_cube, cube);
      high[j] := div(power.high * last_cube + cube - 1, cube);
      low_behind := low_behind + low[j];
      high_behind := high_behind + high[j];
    END LOOP;
    low_before := 0;
    high_before := 0;
    FOR j IN 1..size LOOP
      low_before := low_before + low[j];
      high_before := high_before + high[j];
      low_behind := low_behind - low[j];
      high_behind := high_behind - high[j];
      -- The uniform number lies between uniform / scale and (uniform + 1) / scale.
      IF j = size OR (uniform + 1) * (low_before + high_behind) <= low_before * scale THEN
        RETURN j;
      END IF;
      EXIT WHEN uniform * (high_before + low_behind) < high_before * scale;
    END LOOP;
    uniform := uniform * word + sqlrs.random_word();
    scale := scale * word;
    places := places + 128;
  END LOOP;
END
$sqlrs$;
