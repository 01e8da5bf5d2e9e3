-- The refined residual sensitivity: the greatest weight * L over all distances, exactly, as numerator / 2^places.
-- The vector at distances s is the greatest, over the tables g, of the step of g from the vector at s - e_g. Distances
-- are left out, and with them all that lie beyond, where the horizon is not above the best so far. What is left fits
-- into a box, which grows until it does. docs/proofs/procedures.md says why nothing is lost.
CREATE OR REPLACE FUNCTION sqlrs.fold(
  steps integer[],
  starts integer[],
  answers integer[],
  monomials integer[],
  ceilings integer[],
  degrees integer[],
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
  coefficients CONSTANT numeric[] := sqlrs.coefficients(ceilings, t);
  turns integer[] := ARRAY[]::integer[];
  sizes integer[] := ARRAY[]::integer[];
  strides integer[] := ARRAY[]::integer[];
  cells integer;
  weights numeric[];
  horizon numeric[];
  vectors numeric[];
  vector numeric[];
  grown numeric[];
  rest integer;
  total integer;
  digit integer;
  before integer;
  at_edge boolean;
  outside numeric;
  too_small boolean := true;
BEGIN
  numerator := 0;
  places := 0;
  IF (cardinality(t) >= 0 AND 0 <= ALL (t) AND 'NaN' > ALL (t)) IS NOT TRUE THEN
    RAISE EXCEPTION 'a number of results is missing or negative';
  END IF;
  IF sqlrs.can_change(steps, starts, answers, t || 0::numeric) IS FALSE THEN
    RETURN;
  END IF;
  FOR g IN 1..tables LOOP
    turns[g] := sqlrs.turning_point(ratio, degrees[g]);
    sizes[g] := 2 * turns[g] + 3;
  END LOOP;
  WHILE too_small LOOP
    numerator := 0;
    outside := 0;
    cells := 1;
    total := 0;
    FOR g IN 1..tables LOOP
      strides[g] := cells;
      cells := cells * sizes[g];
      total := total + sizes[g];
    END LOOP;
    SELECT found.numerators, found.places INTO weights, places FROM sqlrs.weights(ratio, total) AS found;
    horizon := sqlrs.horizon(monomials, coefficients, sizes, turns, weights);
    vectors := array_fill(NULL::numeric, ARRAY[cells * width]);
    FOR place IN 0..cells - 1 LOOP
      CONTINUE WHEN place > 0 AND horizon[place + 1] <= numerator;
      vector := CASE WHEN place = 0 THEN t || 0::numeric END;
      rest := place;
      total := 0;
      at_edge := false;
      FOR g IN 1..tables LOOP
        digit := rest % sizes[g];
        rest := rest / sizes[g];
        total := total + digit;
        at_edge := at_edge OR digit = sizes[g] - 1;
        CONTINUE WHEN digit = 0;
        before := (place - strides[g]) * width;
        IF vectors[before + width] IS NULL THEN
          vector := NULL;
          EXIT;
        END IF;
        grown := ARRAY[]::numeric[];
        FOR i IN 1..width LOOP
          grown[i] := vectors[before + i];
        END LOOP;
        grown := sqlrs.grow(steps, starts[g], starts[g + 1] - 1, grown);
        IF vector IS NULL THEN
          vector := grown;
        ELSE
          FOR i IN 1..width LOOP
            IF grown[i] > vector[i] THEN
              vector[i] := grown[i];
            END IF;
          END LOOP;
        END IF;
      END LOOP;
      CONTINUE WHEN vector IS NULL;
      FOR i IN 1..width LOOP
        vectors[place * width + i] := vector[i];
      END LOOP;
      vector := sqlrs.grow(answers, 1, cardinality(answers), vector);
      IF weights[total + 1] * vector[width] IS NULL THEN
        RAISE EXCEPTION 'a bound is missing';
      END IF;
      numerator := greatest(numerator, weights[total + 1] * vector[width]);
      IF at_edge AND horizon[place + 1] > outside THEN
        outside := horizon[place + 1];
      END IF;
    END LOOP;
    too_small := outside > numerator;
    FOR g IN 1..tables LOOP
      sizes[g] := 2 * sizes[g];
    END LOOP;
  END LOOP;
END
$sqlrs$;
