-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) WHERE abs(a.day - b.day) <= 1;

-- the count
SELECT
  COUNT(*) AS results
FROM main.visit AS a
JOIN main.visit AS b
  ON a.patient = b.patient
WHERE
  ABS(a.day - b.day) <= 1;

-- {a}, boundary a.patient, whose rows the solver reads
SELECT
  results,
  DENSE_RANK() OVER (ORDER BY b0 ASC),
  1,
  CAST(CASE
    WHEN ISFINITE(x0)
    THEN x0 - CAST('1970-01-01' AS DATE)
    WHEN x0 > CAST('1970-01-01' AS DATE)
    THEN 2147483647
    ELSE -2147483647
  END AS BIGINT)
FROM (
  SELECT
    COUNT(*) AS results,
    a.patient AS b0,
    a.day AS x0
  FROM main.visit AS a
  GROUP BY
    a.patient,
    a.day
) AS grouped_rows;

-- {b}, boundary a.patient, whose rows the solver reads
SELECT
  results,
  DENSE_RANK() OVER (ORDER BY b0 ASC),
  1,
  CAST(CASE
    WHEN ISFINITE(x0)
    THEN x0 - CAST('1970-01-01' AS DATE)
    WHEN x0 > CAST('1970-01-01' AS DATE)
    THEN 2147483647
    ELSE -2147483647
  END AS BIGINT)
FROM (
  SELECT
    COUNT(*) AS results,
    b.patient AS b0,
    b.day AS x0
  FROM main.visit AS b
  GROUP BY
    b.patient,
    b.day
) AS grouped_rows;
