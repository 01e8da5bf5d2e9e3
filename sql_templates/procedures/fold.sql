-- The refined residual sensitivity: the greatest w_k * L over all distances, exactly, as numerator / 2^places.
-- w_0 = 1 and w_(k+1) is w_k * 2^80 / ratio^2, rounded up to 64 binary digits. The search ends where the ceiling,
-- which falls from there on, is not above the best so far: docs/proofs/procedures.md.
CREATE OR REPLACE FUNCTION sqlrs.fold(
  steps integer[],
  starts integer[],
  answers integer[],
  ceilings integer[],
  degree integer,
  t numeric[],
  ratio numeric,
  OUT numerator numeric,
  OUT places integer
)
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  tables CONSTANT integer := cardinality(starts) - 1;
  -- One value more than t: the last holds the answer's bound.
  width CONSTANT integer := cardinality(t) + 1;
  one CONSTANT numeric := sqlrs.whole_power(2, 63);
  decay_numerator CONSTANT numeric := sqlrs.whole_power(2, 80);
  decay_denominator CONSTANT numeric := ratio * ratio;
  polynomials CONSTANT numeric[] := sqlrs.ceiling(ceilings, degree, t);
  binomials numeric[] := array_fill(0::numeric, ARRAY[degree + 1]);
  layer numeric[] := t || 0::numeric;
  weight numeric := one;
  k integer := 0;
  vector numeric[];
  above numeric;
  total numeric;
BEGIN
  numerator := 0;
  places := 63;
  IF array_position(t, NULL) IS NOT NULL OR 0 > ANY (t) THEN
    RAISE EXCEPTION 'a number of results is missing or negative';
  END IF;
  IF NOT sqlrs.can_change(steps, starts, answers, layer) THEN
    RETURN;
  END IF;
  binomials[1] := 1;
  LOOP
    FOR place IN 0..cardinality(layer) / width - 1 LOOP
      CONTINUE WHEN layer[place * width + 1] IS NULL;
      vector := layer[place * width + 1:(place + 1) * width];
      vector := sqlrs.grow(answers, 1, cardinality(answers), vector);
      numerator := greatest(numerator, weight * vector[width]);
    END LOOP;
    EXIT WHEN tables = 0;
    -- The ceiling falls from k on when a step lowers the weight more than it raises any binomial. The factor
    -- between two weights may exceed the decay by one part in 2^63.
    IF k >= degree
      AND decay_numerator * (one + 1) * (k + 1) <= decay_denominator * one * (k + 1 - degree)
    THEN
      above := 0;
      FOR answer IN 0..cardinality(polynomials) / (degree + 1) - 1 LOOP
        total := 0;
        FOR j IN 1..degree + 1 LOOP
          total := total + polynomials[answer * (degree + 1) + j] * binomials[j];
        END LOOP;
        above := greatest(above, total);
      END LOOP;
      EXIT WHEN weight * above <= numerator;
    END IF;
    k := k + 1;
    layer := sqlrs.next_layer(steps, starts, layer, width, k);
    FOR j IN REVERSE degree + 1..2 LOOP
      binomials[j] := binomials[j] + binomials[j - 1];
    END LOOP;
    weight := weight * decay_numerator;
    WHILE weight <= one * decay_denominator LOOP
      weight := weight * 2;
      numerator := numerator * 2;
      places := places + 1;
    END LOOP;
    weight := div(weight + decay_denominator - 1, decay_denominator);
  END LOOP;
END
$sqlrs$;
