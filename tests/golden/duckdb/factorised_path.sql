-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src JOIN edge d ON c.dst = d.src;

-- the count
WITH a_per_a_dst AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    COUNT(*) AS results
  FROM main.edge AS a
  GROUP BY
    a.dst
), a_b_per_b_dst AS MATERIALIZED (
  SELECT
    b.dst AS b_dst,
    SUM(a_per_a_dst.results) AS results
  FROM a_per_a_dst
  JOIN main.edge AS b
    ON a_per_a_dst.a_dst = b.src
  GROUP BY
    b.dst
), a_b_c_per_c_dst AS MATERIALIZED (
  SELECT
    c.dst AS c_dst,
    SUM(a_b_per_b_dst.results) AS results
  FROM a_b_per_b_dst
  JOIN main.edge AS c
    ON a_b_per_b_dst.b_dst = c.src
  GROUP BY
    c.dst
), d_per_c_dst AS MATERIALIZED (
  SELECT
    d.src AS c_dst,
    COUNT(*) AS results
  FROM main.edge AS d
  GROUP BY
    d.src
)
SELECT
  COALESCE(SUM(CAST(a_b_c_per_c_dst.results AS DECIMAL(38, 0)) * d_per_c_dst.results), 0) AS results
FROM a_b_c_per_c_dst
JOIN d_per_c_dst
  ON a_b_c_per_c_dst.c_dst = d_per_c_dst.c_dst;

-- {a}, boundary a.dst
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    COUNT(*) AS results
  FROM main.edge AS a
  GROUP BY
    a.dst
) AS per_boundary_value;

-- {d}, boundary c.dst
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    COUNT(*) AS results
  FROM main.edge AS d
  GROUP BY
    d.src
) AS per_boundary_value;

-- {a, b}, boundary b.dst
WITH a_per_a_dst AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    COUNT(*) AS results
  FROM main.edge AS a
  GROUP BY
    a.dst
)
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    SUM(a_per_a_dst.results) AS results
  FROM a_per_a_dst
  JOIN main.edge AS b
    ON a_per_a_dst.a_dst = b.src
  GROUP BY
    b.dst
) AS per_boundary_value;

-- {b, c}, boundary a.dst, c.dst
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    SUM(1) AS results
  FROM main.edge AS b
  JOIN main.edge AS c
    ON b.dst = c.src
  GROUP BY
    b.src,
    c.dst
) AS per_boundary_value;

-- {c, d}, boundary b.dst
WITH d_per_c_dst AS MATERIALIZED (
  SELECT
    d.src AS c_dst,
    COUNT(*) AS results
  FROM main.edge AS d
  GROUP BY
    d.src
)
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    SUM(d_per_c_dst.results) AS results
  FROM main.edge AS c
  JOIN d_per_c_dst
    ON c.dst = d_per_c_dst.c_dst
  GROUP BY
    c.src
) AS per_boundary_value;

-- {a, b, c}, boundary c.dst
WITH a_per_a_dst AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    COUNT(*) AS results
  FROM main.edge AS a
  GROUP BY
    a.dst
), a_b_per_b_dst AS MATERIALIZED (
  SELECT
    b.dst AS b_dst,
    SUM(a_per_a_dst.results) AS results
  FROM a_per_a_dst
  JOIN main.edge AS b
    ON a_per_a_dst.a_dst = b.src
  GROUP BY
    b.dst
)
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    SUM(a_b_per_b_dst.results) AS results
  FROM a_b_per_b_dst
  JOIN main.edge AS c
    ON a_b_per_b_dst.b_dst = c.src
  GROUP BY
    c.dst
) AS per_boundary_value;

-- {b, c, d}, boundary a.dst
WITH d_per_c_dst AS MATERIALIZED (
  SELECT
    d.src AS c_dst,
    COUNT(*) AS results
  FROM main.edge AS d
  GROUP BY
    d.src
), c_d_per_b_dst AS MATERIALIZED (
  SELECT
    c.src AS b_dst,
    SUM(d_per_c_dst.results) AS results
  FROM main.edge AS c
  JOIN d_per_c_dst
    ON c.dst = d_per_c_dst.c_dst
  GROUP BY
    c.src
)
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    SUM(c_d_per_b_dst.results) AS results
  FROM main.edge AS b
  JOIN c_d_per_b_dst
    ON b.dst = c_d_per_b_dst.b_dst
  GROUP BY
    b.src
) AS per_boundary_value;
