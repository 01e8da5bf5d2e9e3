-- count per (a, c): edge3(c, d) ⋈ edge4(a above d) where c ≠ d, a above c
-- +4 × count in all: edge1(a above b) ⋈ edge2(b, c) ⋈ [a, c] where b ≠ c
-- count per (a, b): edge1(a above b) ⋈ edge4(a above b)
-- -4 × count in all: edge2(b, c) ⋈ edge3(b, c) ⋈ [a, b] where b ≠ c, a above c
-- reason: asked for
WITH ranks AS MATERIALIZED (
  SELECT
    edge.dst AS value,
    ROW_NUMBER() OVER (ORDER BY COUNT(*) ASC, edge.dst ASC) AS rank
  FROM edge AS edge
  GROUP BY
    edge.dst
), edge1_by_rank AS MATERIALIZED (
  SELECT
    ranks.rank AS src,
    ranks_2.rank AS dst
  FROM edge AS edge1
  JOIN ranks
    ON edge1.src = ranks.value
  JOIN ranks AS ranks_2
    ON edge1.dst = ranks_2.value
), edge1_by_rank_2 AS MATERIALIZED (
  SELECT
    edge1_by_rank.src,
    edge1_by_rank.dst
  FROM edge1_by_rank
  WHERE
    edge1_by_rank.src > edge1_by_rank.dst
), edge4_by_rank AS MATERIALIZED (
  SELECT
    edge1_by_rank.src,
    edge1_by_rank.dst
  FROM edge1_by_rank
  WHERE
    edge1_by_rank.dst > edge1_by_rank.src
), edge3_edge4_per_a_c AS MATERIALIZED (
  SELECT
    edge4.dst AS a,
    edge3.src AS c,
    SUM(1) AS results
  FROM edge1_by_rank AS edge3
  JOIN edge4_by_rank AS edge4
    ON edge3.dst = edge4.src
  WHERE
    edge3.src <> edge3.dst AND edge4.dst > edge3.src
  GROUP BY
    edge4.dst,
    edge3.src
), edge1_edge4_per_a_b AS MATERIALIZED (
  SELECT
    edge1.src AS a,
    edge1.dst AS b
  FROM edge1_by_rank_2 AS edge1
  JOIN edge4_by_rank AS edge4
    ON edge1.src = edge4.dst AND edge1.dst = edge4.src
), corrected AS MATERIALIZED (
  SELECT
    (
      SUM(
        CASE
          WHEN joined.a = edge3_edge4_per_a_c.a AND joined.c = edge3_edge4_per_a_c.c
          THEN edge3_edge4_per_a_c.results
        END
      )
    ) * 4 AS results
  FROM (
    SELECT
      CASE WHEN edge1.dst = edge2.src THEN edge1.src END AS a,
      edge1.dst AS b,
      CASE WHEN edge1.dst = edge2.src THEN edge2.dst END AS c
    FROM edge1_by_rank_2 AS edge1
    JOIN edge1_by_rank AS edge2
      ON edge1.dst = edge2.src
    WHERE
      edge2.src <> edge2.dst
  ) AS joined
  JOIN edge3_edge4_per_a_c
    ON joined.a = edge3_edge4_per_a_c.a AND joined.c = edge3_edge4_per_a_c.c
  UNION ALL
  SELECT
    (
      SUM(1)
    ) * -4 AS results
  FROM (
    SELECT
      CASE WHEN edge2.src = edge3.dst AND edge2.dst = edge3.src THEN edge2.src END AS b,
      edge2.dst AS c
    FROM edge1_by_rank AS edge2
    JOIN edge1_by_rank AS edge3
      ON edge2.src = edge3.dst AND edge2.dst = edge3.src
    WHERE
      edge2.src <> edge2.dst
  ) AS joined
  JOIN edge1_edge4_per_a_b
    ON joined.b = edge1_edge4_per_a_b.b
  WHERE
    edge1_edge4_per_a_b.a > joined.c
)
SELECT
  COALESCE(SUM(corrected.results), 0) AS results
FROM corrected
