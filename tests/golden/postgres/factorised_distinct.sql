-- the query
SELECT count(DISTINCT a.src) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src;

-- the count
WITH c_per_b_dst AS MATERIALIZED (
  SELECT DISTINCT
    c.src AS b_dst
  FROM public.edge AS c
), b_c_per_a_dst AS MATERIALIZED (
  SELECT DISTINCT
    b.src AS a_dst
  FROM public.edge AS b
  JOIN c_per_b_dst
    ON b.dst = c_per_b_dst.b_dst
)
SELECT
  COALESCE(COUNT(*), 0) AS results
FROM (
  SELECT DISTINCT
    a.src AS a_src
  FROM public.edge AS a
  JOIN b_c_per_a_dst
    ON a.dst = b_c_per_a_dst.a_dst
) AS combinations;

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

-- {a, b}, boundary b.dst
SELECT
  COALESCE(MAX(per_boundary_value.results), 0) AS results
FROM (
  SELECT
    COUNT(*) AS results
  FROM (
    SELECT DISTINCT
      a.src AS a_src,
      b.dst AS b_dst
    FROM public.edge AS a
    JOIN public.edge AS b
      ON a.dst = b.src
  ) AS combinations
  GROUP BY
    combinations.b_dst
) AS per_boundary_value;
