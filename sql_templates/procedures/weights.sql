-- The weights w_0 = 1, w_1, .. w_last as numerators over 2^places: each is 2^80 / ratio^2 times the one before,
-- rounded up to 64 binary digits, so that none falls by more than the factor that the noise allows.
CREATE OR REPLACE FUNCTION sqlrs.weights(ratio numeric, last integer, OUT numerators numeric[], OUT places integer)
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  one CONSTANT numeric := sqlrs.whole_power(2, 63);
  decay_numerator CONSTANT numeric := sqlrs.whole_power(2, 80);
  decay_denominator CONSTANT numeric := ratio * ratio;
  weight numeric := one;
  shifts integer[] := ARRAY[63];
BEGIN
  numerators := ARRAY[one];
  places := 63;
  FOR k IN 1..last LOOP
    weight := weight * decay_numerator;
    WHILE weight <= one * decay_denominator LOOP
      weight := weight * 2;
      places := places + 1;
    END LOOP;
    weight := div(weight + decay_denominator - 1, decay_denominator);
    numerators[k + 1] := weight;
    shifts[k + 1] := places;
  END LOOP;
  FOR k IN 0..last LOOP
    numerators[k + 1] := numerators[k + 1] * sqlrs.whole_power(2, places - shifts[k + 1]);
  END LOOP;
END
$sqlrs$;
