-- count per (a, b): edge1(a, b) ⋈ edge5(a, d) ⋈ edge4(b, d) where a ≠ b, a ≠ d, b ≠ d
-- +1 × count in all: [a, b] ⋈ [a, b]
-- -1 × count in all: [a, b]
-- reason: asked for
WITH edge1_edge5_edge4_per_a_b AS MATERIALIZED (
  SELECT
    edge1.src AS a,
    edge1.dst AS b,
    COUNT(*) AS results
  FROM edge AS edge1
  JOIN edge AS edge5
    ON edge1.src = edge5.dst
  JOIN edge AS edge4
    ON edge1.dst = edge4.src AND edge5.src = edge4.dst
  WHERE
    edge1.src <> edge1.dst AND edge5.dst <> edge5.src AND edge1.dst <> edge5.src
  GROUP BY
    edge1.src,
    edge1.dst
), corrected AS MATERIALIZED (
  SELECT
    SUM(
      CAST(edge1_edge5_edge4_per_a_b.results AS DECIMAL(38, 0)) * edge1_edge5_edge4_per_a_b.results
    ) AS results
  FROM edge1_edge5_edge4_per_a_b
  WHERE
    NOT edge1_edge5_edge4_per_a_b.a IS NULL
    AND NOT edge1_edge5_edge4_per_a_b.b IS NULL
  UNION ALL
  SELECT
    (
      SUM(edge1_edge5_edge4_per_a_b.results)
    ) * -1 AS results
  FROM edge1_edge5_edge4_per_a_b
)
SELECT
  COALESCE(SUM(corrected.results), 0) AS results
FROM corrected
