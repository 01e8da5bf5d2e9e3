-- count per (b, d): edge1(a, b) ⋈ edge4(a, d) where a ≠ b, a ≠ d, b ≠ d
-- +1 × count in all: [b, d] ⋈ [b, d]
-- count per (a): edge1(a, b) ⋈ edge2(a, b) where a ≠ b
-- -1 × count in all: [a] ⋈ [a]
-- +1 × count in all: [a]
-- reason: asked for
WITH edge1_edge4_per_b_d AS MATERIALIZED (
  SELECT
    edge1.dst AS b,
    edge4.src AS d,
    COUNT(*) AS results
  FROM edge AS edge1
  JOIN edge AS edge4
    ON edge1.src = edge4.dst
  WHERE
    edge1.src <> edge1.dst AND edge4.dst <> edge4.src AND edge1.dst <> edge4.src
  GROUP BY
    edge1.dst,
    edge4.src
), edge1_edge2_per_a AS MATERIALIZED (
  SELECT
    edge1.src AS a,
    COUNT(*) AS results
  FROM edge AS edge1
  JOIN edge AS edge2
    ON edge1.src = edge2.dst AND edge1.dst = edge2.src
  WHERE
    edge1.src <> edge1.dst
  GROUP BY
    edge1.src
), corrected AS MATERIALIZED (
  SELECT
    SUM(
      CAST(edge1_edge4_per_b_d.results AS DECIMAL(38, 0)) * edge1_edge4_per_b_d_2.results
    ) AS results
  FROM edge1_edge4_per_b_d
  JOIN edge1_edge4_per_b_d AS edge1_edge4_per_b_d_2
    ON edge1_edge4_per_b_d.b = edge1_edge4_per_b_d_2.d
    AND edge1_edge4_per_b_d.d = edge1_edge4_per_b_d_2.b
  UNION ALL
  SELECT
    (
      SUM(CAST(edge1_edge2_per_a.results AS DECIMAL(38, 0)) * edge1_edge2_per_a_2.results)
    ) * -1 AS results
  FROM edge1_edge2_per_a
  JOIN edge1_edge2_per_a AS edge1_edge2_per_a_2
    ON edge1_edge2_per_a.a = edge1_edge2_per_a_2.a
  UNION ALL
  SELECT
    SUM(edge1_edge2_per_a.results) AS results
  FROM edge1_edge2_per_a
)
SELECT
  COALESCE(SUM(corrected.results), 0) AS results
FROM corrected
