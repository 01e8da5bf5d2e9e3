-- count per (a, c): edge1(a, b) ⋈ edge2(b, c)
-- count in all: [a, c] ⋈ edge3(c, d)
-- reason: asked for
WITH edge1_edge2_per_a_c AS MATERIALIZED (
  SELECT DISTINCT
    edge1.src AS a,
    edge2.dst AS c
  FROM edge AS edge1
  JOIN edge AS edge2
    ON edge1.dst = edge2.src
)
SELECT
  COALESCE(COUNT(*), 0) AS results
FROM (
  SELECT DISTINCT
    edge1_edge2_per_a_c.a AS a,
    edge3.dst AS d
  FROM edge1_edge2_per_a_c
  JOIN edge AS edge3
    ON edge1_edge2_per_a_c.c = edge3.src
) AS combinations
