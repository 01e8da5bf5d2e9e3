-- One aggregate in all groups, with each unit's part cut to a threshold that is chosen privately, and Laplace noise. The
-- order is: choose by the numbers of units above each threshold, cut, add noise, round.
--
-- groups: [keys, numbers of public rows, ordinals] of each; place: which of these numbers is this aggregate's. contributions:
-- [place, ordinals, units, units below 0, sum] as units stand behind thresholds: place 0 has those up to the first one,
-- the last place those above all. shared: how many aggregates share epsilon. strict: one unit may be replaced. signed:
-- a unit may contribute less than 0. worth: of one whole number. docs/proofs/procedures.md has the proof.
CREATE OR REPLACE FUNCTION sqlrs.clipped_numbers(
  groups jsonb,
  place integer,
  contributions jsonb,
  thresholds numeric[],
  epsilon numeric,
  shared integer,
  strict boolean,
  signed boolean,
  worth numeric,
  OUT numbers jsonb,
  OUT clipping jsonb
)
LANGUAGE plpgsql
AS $sqlrs$
#variable_conflict use_column
DECLARE
  this_place CONSTANT integer := place;
  size CONSTANT integer := cardinality(thresholds);
  alone CONSTANT boolean := jsonb_array_length(groups) = 1;
  moves CONSTANT numeric := CASE WHEN strict AND (signed OR NOT alone) THEN 2 ELSE 1 END;
  -- The numbers of a unit that is cut in several groups are scaled down in parts of a whole one.
  parts CONSTANT numeric := CASE WHEN alone OR size = 1 THEN 1 ELSE 65536 END;
  -- With one threshold there is no choice to pay for: else 3 tenths of epsilon choose, and 7 are for the noise.
  tenths CONSTANT numeric := CASE WHEN size = 1 THEN 10 ELSE 7 END;
  fine CONSTANT numeric := 1000000000000;
  units numeric[];
  below numeric[];
  above numeric[];
  chosen integer := 1;
  threshold numeric;
  factors numeric[];
  whole numeric := 0;
  bound numeric;
BEGIN
  IF (size >= 1 AND shared >= 1 AND worth > 0 AND strict IS NOT NULL AND signed IS NOT NULL AND alone IS NOT NULL
    AND jsonb_typeof(contributions) = 'array') IS NOT TRUE
    OR EXISTS (
      SELECT 1
      FROM jsonb_array_elements(contributions) AS one
      WHERE (
        (one ->> 0)::integer BETWEEN 0 AND size
        AND jsonb_typeof(one -> 1) = 'array'
        AND (one ->> 2)::numeric BETWEEN (one ->> 3)::numeric AND 1e30
        AND (one ->> 3)::numeric >= 0
        AND (one ->> 4)::numeric = trunc((one ->> 4)::numeric)
        AND abs((one ->> 4)::numeric) < 'Infinity'
      ) IS NOT TRUE
    )
  THEN
    RAISE EXCEPTION 'there are no such contributions';
  END IF;
  SELECT
    array_agg(coalesce(there.units, 0) ORDER BY every.place),
    array_agg(coalesce(there.below, 0) ORDER BY every.place)
  INTO STRICT units, below
  FROM generate_series(0, size) AS every (place)
  LEFT JOIN (
    SELECT
      (one ->> 0)::integer AS place, sum((one ->> 2)::numeric) AS units, sum((one ->> 3)::numeric) AS below
    FROM jsonb_array_elements(contributions) AS one
    GROUP BY 1
  ) AS there ON there.place = every.place;
  above[size] := units[size + 1];
  FOR j IN REVERSE size - 1..1 LOOP
    above[j] := above[j + 1] + units[j + 1];
  END LOOP;
  IF size > 1 THEN
    chosen := sqlrs.choose_threshold(thresholds, above, 3 * epsilon * fine, 10 * shared * fine);
  END IF;
  threshold := thresholds[chosen];
  FOR b IN 1..size + 1 LOOP
    factors[b] := CASE
      WHEN b <= chosen THEN parts
      WHEN alone OR b > size THEN 0
      ELSE div(parts * threshold, thresholds[b])
    END;
    -- One number of a unit above the threshold counts as the threshold, or its opposite.
    IF alone AND b > chosen THEN
      whole := whole + threshold * (units[b] - 2 * below[b]);
    END IF;
  END LOOP;
  bound := moves * parts * threshold * shared * 10;
  WITH noisy AS MATERIALIZED (
    SELECT
      told.place,
      (told.value -> 1 ->> this_place)::numeric AS fixed,
      -- The nearest whole number of n parts is the floor of (2 n + parts) / (2 parts).
      2 * (coalesce(sums.total, 0) + whole + sqlrs.laplace(tenths * epsilon, bound)) + parts AS doubled
    FROM jsonb_array_elements(groups) WITH ORDINALITY AS told (value, place)
    LEFT JOIN (
      SELECT one -> 1 AS ordinals, sum(factors[(one ->> 0)::integer + 1] * (one ->> 4)::numeric) AS total
      FROM jsonb_array_elements(contributions) AS one
      GROUP BY 1
    ) AS sums ON sums.ordinals = told.value -> 2
  )
  SELECT
    coalesce(
      jsonb_agg(
        noisy.fixed + div(noisy.doubled - mod(mod(noisy.doubled, 2 * parts) + 2 * parts, 2 * parts), 2 * parts)
        ORDER BY noisy.place
      ),
      '[]'
    )
  INTO STRICT numbers
  FROM noisy;
  -- Both are public once the threshold is chosen. The error is that of the noise alone.
  clipping := jsonb_build_array(
    trim_scale(threshold * worth),
    trim_scale(round(sqrt(2 * moves * moves) * threshold * worth * shared * 10 / (tenths * epsilon), 6))
  );
END
$sqlrs$;
