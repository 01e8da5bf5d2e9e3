-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src WHERE a.src <> c.dst;

-- the count
WITH a_per_a_dst AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    COUNT(*) AS results
  FROM (
    SELECT
      a.dst
    FROM public.edge AS a
    ORDER BY
      a.dst ASC
  ) AS a
  GROUP BY
    a.dst
), a_b_per_b_dst AS MATERIALIZED (
  SELECT
    b.dst AS b_dst,
    SUM(a_per_a_dst.results) AS results
  FROM a_per_a_dst
  JOIN public.edge AS b
    ON a_per_a_dst.a_dst = b.src
  GROUP BY
    b.dst
), c_per_b_dst AS MATERIALIZED (
  SELECT
    c.src AS b_dst,
    COUNT(*) AS results
  FROM public.edge AS c
  GROUP BY
    c.src
), corrected AS MATERIALIZED (
  SELECT
    SUM(CAST(a_b_per_b_dst.results AS DECIMAL(38, 0)) * c_per_b_dst.results) AS results
  FROM a_b_per_b_dst
  JOIN c_per_b_dst
    ON a_b_per_b_dst.b_dst = c_per_b_dst.b_dst
  UNION ALL
  SELECT
    (
      COUNT(*)
    ) * -1 AS results
  FROM public.edge AS a
  JOIN public.edge AS c
    ON a.src = c.dst
  JOIN public.edge AS b
    ON a.dst = b.src AND c.src = b.dst
)
SELECT
  COALESCE(SUM(corrected.results), 0) AS results
FROM corrected;

-- {a}, boundary a.dst
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    COUNT(*) AS results
  FROM (
    SELECT
      a.dst
    FROM public.edge AS a
    ORDER BY
      a.dst ASC
  ) AS a
  GROUP BY
    a.dst
) AS per_boundary_value;

-- {c}, boundary b.dst
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    COUNT(*) AS results
  FROM public.edge AS c
  GROUP BY
    c.src
) AS per_boundary_value;

-- {a, b}, boundary b.dst
WITH a_per_a_dst AS MATERIALIZED (
  SELECT
    a.dst AS a_dst,
    COUNT(*) AS results
  FROM (
    SELECT
      a.dst
    FROM public.edge AS a
    ORDER BY
      a.dst ASC
  ) AS a
  GROUP BY
    a.dst
)
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    SUM(a_per_a_dst.results) AS results
  FROM a_per_a_dst
  JOIN public.edge AS b
    ON a_per_a_dst.a_dst = b.src
  GROUP BY
    b.dst
) AS per_boundary_value;

-- {b, c}, boundary a.dst
WITH c_per_b_dst AS MATERIALIZED (
  SELECT
    c.src AS b_dst,
    COUNT(*) AS results
  FROM public.edge AS c
  GROUP BY
    c.src
)
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    SUM(c_per_b_dst.results) AS results
  FROM public.edge AS b
  JOIN c_per_b_dst
    ON b.dst = c_per_b_dst.b_dst
  GROUP BY
    b.src
) AS per_boundary_value;
