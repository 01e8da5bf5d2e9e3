-- count per (a, b): edge1(a, b) ⋈ edge5(a, d) ⋈ edge4(b, d) where a ≠ b, a ≠ d, b ≠ d
-- +1 × count in all: [a, b] ⋈ [a, b]
-- -1 × count in all: [a, b]
-- reason: asked for
WITH edge1_edge5_edge4_per_a_b AS MATERIALIZED (
  SELECT
    joined.a AS a,
    joined.b AS b,
    SUM(1) AS results
  FROM (
    SELECT
      edge1.src AS a,
      CASE WHEN edge1.src = edge5.dst THEN edge1.dst END AS b,
      CASE WHEN edge1.src = edge5.dst THEN edge5.src END AS d
    FROM edge AS edge1
    JOIN edge AS edge5
      ON edge1.src = edge5.dst
    WHERE
      edge1.src <> edge1.dst AND edge5.dst <> edge5.src AND edge1.dst <> edge5.src
  ) AS joined
  JOIN edge AS edge4
    ON joined.b = edge4.src AND joined.d = edge4.dst
  GROUP BY
    joined.a,
    joined.b
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
