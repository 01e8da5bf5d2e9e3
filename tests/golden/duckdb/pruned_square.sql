-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src JOIN edge d ON c.dst = d.src AND d.dst = a.src;

-- the count
WITH a_d_per_a_dst_c_dst AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    d.src AS c_dst,
    SUM(1) AS results
  FROM main.edge AS a
  JOIN main.edge AS d
    ON a.src = d.dst
  GROUP BY
    a.dst,
    d.src
)
SELECT
  COALESCE(
    SUM(
      CAST(a_d_per_a_dst_c_dst.results AS DECIMAL(38, 0)) * a_d_per_a_dst_c_dst_2.results
    ),
    0
  ) AS results
FROM a_d_per_a_dst_c_dst
JOIN a_d_per_a_dst_c_dst AS a_d_per_a_dst_c_dst_2
  ON a_d_per_a_dst_c_dst.a_dst = a_d_per_a_dst_c_dst_2.c_dst
  AND a_d_per_a_dst_c_dst.c_dst = a_d_per_a_dst_c_dst_2.a_dst;

-- {a, b} and {a, d} and {b, c} and {c, d}, boundary a.src, b.dst
WITH bound_a_src AS MATERIALIZED (
  SELECT
    a.src AS a_src,
    COUNT(*) AS results
  FROM main.edge AS a
  JOIN (
    SELECT DISTINCT
      b.src AS a_dst
    FROM main.edge AS b
  ) AS b
    ON a.dst = b.a_dst
  GROUP BY
    a.src
), bound_b_dst AS MATERIALIZED (
  SELECT
    b.dst AS b_dst,
    COUNT(*) AS results
  FROM (
    SELECT DISTINCT
      a.dst AS a_dst
    FROM main.edge AS a
  ) AS a
  JOIN main.edge AS b
    ON a.a_dst = b.src
  GROUP BY
    b.dst
), seeds_a_src AS MATERIALIZED (
  SELECT
    bound_a_src.a_src
  FROM bound_a_src
  ORDER BY
    bound_a_src.results DESC,
    bound_a_src.a_src ASC
  LIMIT 8
), seeds_a_src_a_per_a_dst_a_src AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    seeds_a_src.a_src AS a_src
  FROM seeds_a_src
  JOIN main.edge AS a
    ON seeds_a_src.a_src = a.src
), best_seed AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(1) AS results
    FROM seeds_a_src_a_per_a_dst_a_src
    JOIN main.edge AS b
      ON seeds_a_src_a_per_a_dst_a_src.a_dst = b.src
    GROUP BY
      seeds_a_src_a_per_a_dst_a_src.a_src,
      b.dst
  ) AS per_boundary_value
), survivors_a_src AS MATERIALIZED (
  SELECT
    bound_a_src.a_src
  FROM bound_a_src
  CROSS JOIN best_seed
  WHERE
    bound_a_src.results > best_seed.results
    AND NOT bound_a_src.a_src IN (
      SELECT
        seeds_a_src.a_src
      FROM seeds_a_src
    )
), survivors_b_dst AS MATERIALIZED (
  SELECT
    bound_b_dst.b_dst
  FROM bound_b_dst
  CROSS JOIN best_seed
  WHERE
    bound_b_dst.results > best_seed.results
), survivors_a_src_a_per_a_dst_a_src AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    survivors_a_src.a_src AS a_src
  FROM survivors_a_src
  JOIN main.edge AS a
    ON survivors_a_src.a_src = a.src
), survivors_b_dst_b_per_a_dst_b_dst AS MATERIALIZED (
  SELECT
    b.src AS a_dst,
    survivors_b_dst.b_dst AS b_dst
  FROM survivors_b_dst
  JOIN main.edge AS b
    ON survivors_b_dst.b_dst = b.dst
), best_survivor AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(1) AS results
    FROM survivors_a_src_a_per_a_dst_a_src
    JOIN survivors_b_dst_b_per_a_dst_b_dst
      ON survivors_a_src_a_per_a_dst_a_src.a_dst = survivors_b_dst_b_per_a_dst_b_dst.a_dst
    GROUP BY
      survivors_a_src_a_per_a_dst_a_src.a_src,
      survivors_b_dst_b_per_a_dst_b_dst.b_dst
  ) AS per_boundary_value
)
SELECT
  CASE
    WHEN best_seed.results IS NULL OR best_survivor.results IS NULL
    THEN NULL
    ELSE GREATEST(best_seed.results, best_survivor.results)
  END AS results
FROM best_seed
CROSS JOIN best_survivor;

-- {a, b, c} and {a, b, d} and {a, c, d} and {b, c, d}, boundary a.src, c.dst
WITH b_c_per_a_dst AS MATERIALIZED (
  SELECT
    b.src AS a_dst,
    COUNT(*) AS results
  FROM main.edge AS b
  JOIN (
    SELECT DISTINCT
      c.src AS b_dst
    FROM main.edge AS c
  ) AS c
    ON b.dst = c.b_dst
  GROUP BY
    b.src
), bound_a_src AS MATERIALIZED (
  SELECT
    a.src AS a_src,
    SUM(b_c_per_a_dst.results) AS results
  FROM main.edge AS a
  JOIN b_c_per_a_dst
    ON a.dst = b_c_per_a_dst.a_dst
  GROUP BY
    a.src
), a_b_per_b_dst AS MATERIALIZED (
  SELECT
    b.dst AS b_dst,
    COUNT(*) AS results
  FROM (
    SELECT DISTINCT
      a.dst AS a_dst
    FROM main.edge AS a
  ) AS a
  JOIN main.edge AS b
    ON a.a_dst = b.src
  GROUP BY
    b.dst
), bound_c_dst AS MATERIALIZED (
  SELECT
    c.dst AS c_dst,
    SUM(a_b_per_b_dst.results) AS results
  FROM a_b_per_b_dst
  JOIN main.edge AS c
    ON a_b_per_b_dst.b_dst = c.src
  GROUP BY
    c.dst
), seeds_a_src AS MATERIALIZED (
  SELECT
    bound_a_src.a_src
  FROM bound_a_src
  ORDER BY
    bound_a_src.results DESC,
    bound_a_src.a_src ASC
  LIMIT 8
), seeds_a_src_a_per_a_dst_a_src AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    seeds_a_src.a_src AS a_src
  FROM seeds_a_src
  JOIN main.edge AS a
    ON seeds_a_src.a_src = a.src
), seeds_a_src_a_b_per_a_src_b_dst AS MATERIALIZED (
  SELECT
    seeds_a_src_a_per_a_dst_a_src.a_src AS a_src,
    b.dst AS b_dst,
    SUM(1) AS results
  FROM seeds_a_src_a_per_a_dst_a_src
  JOIN main.edge AS b
    ON seeds_a_src_a_per_a_dst_a_src.a_dst = b.src
  GROUP BY
    seeds_a_src_a_per_a_dst_a_src.a_src,
    b.dst
), best_seed AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(seeds_a_src_a_b_per_a_src_b_dst.results) AS results
    FROM seeds_a_src_a_b_per_a_src_b_dst
    JOIN main.edge AS c
      ON seeds_a_src_a_b_per_a_src_b_dst.b_dst = c.src
    GROUP BY
      seeds_a_src_a_b_per_a_src_b_dst.a_src,
      c.dst
  ) AS per_boundary_value
), survivors_a_src AS MATERIALIZED (
  SELECT
    bound_a_src.a_src
  FROM bound_a_src
  CROSS JOIN best_seed
  WHERE
    bound_a_src.results > best_seed.results
    AND NOT bound_a_src.a_src IN (
      SELECT
        seeds_a_src.a_src
      FROM seeds_a_src
    )
), survivors_c_dst AS MATERIALIZED (
  SELECT
    bound_c_dst.c_dst
  FROM bound_c_dst
  CROSS JOIN best_seed
  WHERE
    bound_c_dst.results > best_seed.results
), survivors_a_src_a_per_a_dst_a_src AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    survivors_a_src.a_src AS a_src
  FROM survivors_a_src
  JOIN main.edge AS a
    ON survivors_a_src.a_src = a.src
), survivors_a_src_a_b_per_a_src_b_dst AS MATERIALIZED (
  SELECT
    survivors_a_src_a_per_a_dst_a_src.a_src AS a_src,
    b.dst AS b_dst,
    SUM(1) AS results
  FROM survivors_a_src_a_per_a_dst_a_src
  JOIN main.edge AS b
    ON survivors_a_src_a_per_a_dst_a_src.a_dst = b.src
  GROUP BY
    survivors_a_src_a_per_a_dst_a_src.a_src,
    b.dst
), survivors_c_dst_c_per_b_dst_c_dst AS MATERIALIZED (
  SELECT
    c.src AS b_dst,
    survivors_c_dst.c_dst AS c_dst
  FROM survivors_c_dst
  JOIN main.edge AS c
    ON survivors_c_dst.c_dst = c.dst
), best_survivor AS MATERIALIZED (
  SELECT
    COALESCE(MAX(per_boundary_value.results), 0) AS results
  FROM (
    SELECT
      SUM(survivors_a_src_a_b_per_a_src_b_dst.results) AS results
    FROM survivors_a_src_a_b_per_a_src_b_dst
    JOIN survivors_c_dst_c_per_b_dst_c_dst
      ON survivors_a_src_a_b_per_a_src_b_dst.b_dst = survivors_c_dst_c_per_b_dst_c_dst.b_dst
    GROUP BY
      survivors_a_src_a_b_per_a_src_b_dst.a_src,
      survivors_c_dst_c_per_b_dst_c_dst.c_dst
  ) AS per_boundary_value
)
SELECT
  CASE
    WHEN best_seed.results IS NULL OR best_survivor.results IS NULL
    THEN NULL
    ELSE GREATEST(best_seed.results, best_survivor.results)
  END AS results
FROM best_seed
CROSS JOIN best_survivor;
