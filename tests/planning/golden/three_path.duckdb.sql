-- bound for each (a):
--   count per (b): edge2(b, c) ⋈ edge3(c) where b ≠ c
--   count per (a): edge1(a, b) ⋈ [b] where a ≠ b
-- bound for each (d):
--   count per (c): edge1(b) ⋈ edge2(b, c) where b ≠ c
--   count per (d): [c] ⋈ edge3(c, d) where c ≠ d
-- exact for the (a) with the largest bounds:
--   count per (a, b): seeds_a(a) ⋈ edge1(a, b) where a ≠ b
--   count per (a, c): [a, b] ⋈ edge2(b, c) where a ≠ c, b ≠ c
--   +1 × count per (a, d): [a, c] ⋈ edge3(c, d) where a ≠ d, c ≠ d
--   count per (d): edge2(c, d) ⋈ edge3(c, d) where c ≠ d
--   -1 × count per (a, d): [a, d] ⋈ [d]
--   count per (a, d): seeds_a(a) ⋈ edge2(a, d) where a ≠ d
--   +1 × count per (a, d): [a, d] ⋈ edge1(a, d)
-- exact where a bound exceeds the best so far:
--   count per (a, b): survivors_a(a) ⋈ edge1(a, b) where a ≠ b
--   count per (a, c): [a, b] ⋈ edge2(b, c) where a ≠ c, b ≠ c
--   count per (c, d): survivors_d(d) ⋈ edge3(c, d) where c ≠ d
--   +1 × count per (a, d): [a, c] ⋈ [c, d] where a ≠ d
--   count per (a, d): edge1(a, d) ⋈ survivors_a(a) ⋈ survivors_d(d) where a ≠ d
--   count per (a, d): survivors_a(a) ⋈ [a, d]
--   count per (d): [c, d] ⋈ edge2(c, d)
--   -1 × count per (a, d): [a, d] ⋈ [d]
--   count per (a, d): survivors_a(a) ⋈ edge2(a, d) where a ≠ d
--   +1 × count per (a, d): [a, d] ⋈ [a, d]
-- largest
-- reason: asked for
WITH edge2_edge3_per_b AS MATERIALIZED (
  SELECT
    edge2.src AS b,
    COUNT(*) AS results
  FROM edge AS edge2
  JOIN (
    SELECT DISTINCT
      edge3.src AS c
    FROM edge AS edge3
  ) AS edge3
    ON edge2.dst = edge3.c
  WHERE
    edge2.src <> edge2.dst
  GROUP BY
    edge2.src
), bound_a AS MATERIALIZED (
  SELECT
    edge1.src AS a,
    SUM(edge2_edge3_per_b.results) AS results
  FROM edge AS edge1
  JOIN edge2_edge3_per_b
    ON edge1.dst = edge2_edge3_per_b.b
  WHERE
    edge1.src <> edge1.dst
  GROUP BY
    edge1.src
), edge1_edge2_per_c AS MATERIALIZED (
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
), bound_d AS MATERIALIZED (
  SELECT
    edge3.dst AS d,
    SUM(edge1_edge2_per_c.results) AS results
  FROM edge1_edge2_per_c
  JOIN edge AS edge3
    ON edge1_edge2_per_c.c = edge3.src
  WHERE
    edge3.src <> edge3.dst
  GROUP BY
    edge3.dst
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
), seeds_a_edge1_edge2_per_a_c AS MATERIALIZED (
  SELECT
    seeds_a_edge1_per_a_b.a AS a,
    edge2.dst AS c,
    SUM(1) AS results
  FROM seeds_a_edge1_per_a_b
  JOIN edge AS edge2
    ON seeds_a_edge1_per_a_b.b = edge2.src
  WHERE
    edge2.src <> edge2.dst AND seeds_a_edge1_per_a_b.a <> edge2.dst
  GROUP BY
    seeds_a_edge1_per_a_b.a,
    edge2.dst
), edge2_edge3_per_d AS MATERIALIZED (
  SELECT
    edge2.src AS d,
    COUNT(*) AS results
  FROM edge AS edge2
  JOIN edge AS edge3
    ON edge2.dst = edge3.src AND edge2.src = edge3.dst
  WHERE
    edge2.dst <> edge2.src
  GROUP BY
    edge2.src
), seeds_a_edge2_per_a_d AS MATERIALIZED (
  SELECT
    seeds_a.a AS a,
    edge2.src AS d
  FROM seeds_a
  JOIN edge AS edge2
    ON seeds_a.a = edge2.dst
  WHERE
    edge2.dst <> edge2.src
), corrected_a_d AS MATERIALIZED (
  SELECT
    seeds_a_edge1_edge2_per_a_c.a AS a,
    edge3.dst AS d,
    SUM(seeds_a_edge1_edge2_per_a_c.results) AS results
  FROM seeds_a_edge1_edge2_per_a_c
  JOIN edge AS edge3
    ON seeds_a_edge1_edge2_per_a_c.c = edge3.src
  WHERE
    edge3.src <> edge3.dst AND seeds_a_edge1_edge2_per_a_c.a <> edge3.dst
  GROUP BY
    seeds_a_edge1_edge2_per_a_c.a,
    edge3.dst
  UNION ALL
  SELECT
    seeds_a_edge1_per_a_b.a AS a,
    seeds_a_edge1_per_a_b.b AS d,
    (
      edge2_edge3_per_d.results
    ) * -1 AS results
  FROM seeds_a_edge1_per_a_b
  JOIN edge2_edge3_per_d
    ON seeds_a_edge1_per_a_b.b = edge2_edge3_per_d.d
  UNION ALL
  SELECT
    seeds_a_edge2_per_a_d.a AS a,
    seeds_a_edge2_per_a_d.d AS d,
    1 AS results
  FROM seeds_a_edge2_per_a_d
  JOIN edge AS edge1
    ON seeds_a_edge2_per_a_d.a = edge1.src AND seeds_a_edge2_per_a_d.d = edge1.dst
), best_seed AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(corrected_a_d.results) AS results
    FROM corrected_a_d
    GROUP BY
      corrected_a_d.a,
      corrected_a_d.d
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
), survivors_d AS MATERIALIZED (
  SELECT
    bound_d.d
  FROM bound_d
  CROSS JOIN best_seed
  WHERE
    bound_d.results > best_seed.results
), survivors_a_edge1_per_a_b AS MATERIALIZED (
  SELECT
    survivors_a.a AS a,
    edge1.dst AS b
  FROM survivors_a
  JOIN edge AS edge1
    ON survivors_a.a = edge1.src
  WHERE
    edge1.src <> edge1.dst
), survivors_a_edge1_edge2_per_a_c AS MATERIALIZED (
  SELECT
    survivors_a_edge1_per_a_b.a AS a,
    edge2.dst AS c,
    SUM(1) AS results
  FROM survivors_a_edge1_per_a_b
  JOIN edge AS edge2
    ON survivors_a_edge1_per_a_b.b = edge2.src
  WHERE
    edge2.src <> edge2.dst AND survivors_a_edge1_per_a_b.a <> edge2.dst
  GROUP BY
    survivors_a_edge1_per_a_b.a,
    edge2.dst
), survivors_d_edge3_per_c_d AS MATERIALIZED (
  SELECT
    edge3.src AS c,
    survivors_d.d AS d
  FROM survivors_d
  JOIN edge AS edge3
    ON survivors_d.d = edge3.dst
  WHERE
    edge3.src <> edge3.dst
), edge1_survivors_a_survivors_d_per_a_d AS MATERIALIZED (
  SELECT
    joined.a AS a,
    joined.d AS d
  FROM (
    SELECT
      edge1.src AS a,
      CASE WHEN edge1.src = survivors_a.a THEN edge1.dst END AS d
    FROM edge AS edge1
    JOIN survivors_a
      ON edge1.src = survivors_a.a
    WHERE
      edge1.src <> edge1.dst
  ) AS joined
  JOIN survivors_d
    ON joined.d = survivors_d.d
), survivors_a_edge1_survivors_a_survivors_d_per_a_ AS MATERIALIZED (
  SELECT
    survivors_a.a AS a,
    edge1_survivors_a_survivors_d_per_a_d.d AS d
  FROM survivors_a
  JOIN edge1_survivors_a_survivors_d_per_a_d
    ON survivors_a.a = edge1_survivors_a_survivors_d_per_a_d.a
), survivors_d_edge3_edge2_per_d AS MATERIALIZED (
  SELECT
    survivors_d_edge3_per_c_d.d AS d,
    COUNT(*) AS results
  FROM survivors_d_edge3_per_c_d
  JOIN edge AS edge2
    ON survivors_d_edge3_per_c_d.c = edge2.dst
    AND survivors_d_edge3_per_c_d.d = edge2.src
  GROUP BY
    survivors_d_edge3_per_c_d.d
), survivors_a_edge2_per_a_d AS MATERIALIZED (
  SELECT
    survivors_a.a AS a,
    edge2.src AS d
  FROM survivors_a
  JOIN edge AS edge2
    ON survivors_a.a = edge2.dst
  WHERE
    edge2.dst <> edge2.src
), corrected_a_d_2 AS MATERIALIZED (
  SELECT
    survivors_a_edge1_edge2_per_a_c.a AS a,
    survivors_d_edge3_per_c_d.d AS d,
    SUM(survivors_a_edge1_edge2_per_a_c.results) AS results
  FROM survivors_a_edge1_edge2_per_a_c
  JOIN survivors_d_edge3_per_c_d
    ON survivors_a_edge1_edge2_per_a_c.c = survivors_d_edge3_per_c_d.c
  WHERE
    survivors_a_edge1_edge2_per_a_c.a <> survivors_d_edge3_per_c_d.d
  GROUP BY
    survivors_a_edge1_edge2_per_a_c.a,
    survivors_d_edge3_per_c_d.d
  UNION ALL
  SELECT
    survivors_a_edge1_survivors_a_survivors_d_per_a_.a AS a,
    survivors_a_edge1_survivors_a_survivors_d_per_a_.d AS d,
    (
      survivors_d_edge3_edge2_per_d.results
    ) * -1 AS results
  FROM survivors_a_edge1_survivors_a_survivors_d_per_a_
  JOIN survivors_d_edge3_edge2_per_d
    ON survivors_a_edge1_survivors_a_survivors_d_per_a_.d = survivors_d_edge3_edge2_per_d.d
  UNION ALL
  SELECT
    survivors_a_edge2_per_a_d.a AS a,
    survivors_a_edge2_per_a_d.d AS d,
    1 AS results
  FROM survivors_a_edge2_per_a_d
  JOIN survivors_d_edge3_per_c_d
    ON survivors_a_edge2_per_a_d.a = survivors_d_edge3_per_c_d.c
    AND survivors_a_edge2_per_a_d.d = survivors_d_edge3_per_c_d.d
), best_survivor AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(corrected_a_d_2.results) AS results
    FROM corrected_a_d_2
    GROUP BY
      corrected_a_d_2.a,
      corrected_a_d_2.d
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
