-- bound for each (a):
--   count per (a): edge1(a, b) ⋈ edge2(b) where a ≠ b
-- bound for each (c):
--   count per (c): edge1(b) ⋈ edge2(b, c) where b ≠ c
-- exact for the (a) with the largest bounds:
--   count per (a, b): seeds_a(a) ⋈ edge1(a, b) where a ≠ b
--   count per (a, c): [a, b] ⋈ edge2(b, c) where a ≠ c, b ≠ c
-- exact where a bound exceeds the best so far:
--   count per (a, b): survivors_a(a) ⋈ edge1(a, b) where a ≠ b
--   count per (b, c): survivors_c(c) ⋈ edge2(b, c) where b ≠ c
--   count per (a, c): [a, b] ⋈ [b, c] where a ≠ c
-- largest
-- reason: asked for
WITH bound_a AS MATERIALIZED (
  SELECT
    edge1.src AS a,
    COUNT(*) AS results
  FROM edge AS edge1
  JOIN (
    SELECT DISTINCT
      edge2.src AS b
    FROM edge AS edge2
  ) AS edge2
    ON edge1.dst = edge2.b
  WHERE
    edge1.src <> edge1.dst
  GROUP BY
    edge1.src
), bound_c AS MATERIALIZED (
  SELECT
    edge2.dst AS c,
    COUNT(*) AS results
  FROM (
    SELECT DISTINCT
      edge1.dst AS b
    FROM edge AS edge1
  ) AS edge1
  JOIN edge AS edge2
    ON edge1.b = edge2.src
  WHERE
    edge2.src <> edge2.dst
  GROUP BY
    edge2.dst
), seeds_a AS MATERIALIZED (
  SELECT
    bound_a.a
  FROM bound_a
  ORDER BY
    bound_a.results DESC,
    bound_a.a ASC
  LIMIT 8
), seeds_a_edge1_per_a_b AS MATERIALIZED (
  SELECT
    seeds_a.a AS a,
    edge1.dst AS b
  FROM seeds_a
  JOIN edge AS edge1
    ON seeds_a.a = edge1.src
  WHERE
    edge1.src <> edge1.dst
), best_seed AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(1) AS results
    FROM seeds_a_edge1_per_a_b
    JOIN edge AS edge2
      ON seeds_a_edge1_per_a_b.b = edge2.src
    WHERE
      edge2.src <> edge2.dst AND seeds_a_edge1_per_a_b.a <> edge2.dst
    GROUP BY
      seeds_a_edge1_per_a_b.a,
      edge2.dst
  ) AS per_boundary_value
), survivors_a AS MATERIALIZED (
  SELECT
    bound_a.a
  FROM bound_a
  CROSS JOIN best_seed
  WHERE
    bound_a.results > best_seed.results
    AND NOT bound_a.a IN (
      SELECT
        seeds_a.a
      FROM seeds_a
    )
), survivors_c AS MATERIALIZED (
  SELECT
    bound_c.c
  FROM bound_c
  CROSS JOIN best_seed
  WHERE
    bound_c.results > best_seed.results
), survivors_a_edge1_per_a_b AS MATERIALIZED (
  SELECT
    survivors_a.a AS a,
    edge1.dst AS b
  FROM survivors_a
  JOIN edge AS edge1
    ON survivors_a.a = edge1.src
  WHERE
    edge1.src <> edge1.dst
), survivors_c_edge2_per_b_c AS MATERIALIZED (
  SELECT
    edge2.src AS b,
    survivors_c.c AS c
  FROM survivors_c
  JOIN edge AS edge2
    ON survivors_c.c = edge2.dst
  WHERE
    edge2.src <> edge2.dst
), best_survivor AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(1) AS results
    FROM survivors_a_edge1_per_a_b
    JOIN survivors_c_edge2_per_b_c
      ON survivors_a_edge1_per_a_b.b = survivors_c_edge2_per_b_c.b
    WHERE
      survivors_a_edge1_per_a_b.a <> survivors_c_edge2_per_b_c.c
    GROUP BY
      survivors_a_edge1_per_a_b.a,
      survivors_c_edge2_per_b_c.c
  ) AS per_boundary_value
)
SELECT
  CASE
    WHEN best_seed.results IS NULL OR best_survivor.results IS NULL
    THEN NULL
    ELSE GREATEST(best_seed.results, best_survivor.results)
  END AS results
FROM best_seed
CROSS JOIN best_survivor
