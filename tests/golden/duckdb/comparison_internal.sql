-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) WHERE a.day < b.day;

-- the count
SELECT
  COUNT(*) AS results
FROM main.visit AS a
JOIN main.visit AS b
  ON a.patient = b.patient
JOIN main.visit AS c
  ON a.patient = c.patient
WHERE
  a.day < b.day;

-- {a} and {b}, boundary a.patient
WITH per_boundary_value AS (
  SELECT
    COUNT(*) AS results
  FROM main.visit AS a
  GROUP BY
    a.patient
)
SELECT
  COALESCE(MAX(results), 0)
FROM per_boundary_value;

-- {c}, boundary a.patient
WITH per_boundary_value AS (
  SELECT
    COUNT(*) AS results
  FROM main.visit AS c
  GROUP BY
    c.patient
)
SELECT
  COALESCE(MAX(results), 0)
FROM per_boundary_value;

-- {a, b}, boundary a.patient
WITH per_boundary_value AS (
  SELECT
    COUNT(*) AS results
  FROM main.visit AS a
  JOIN main.visit AS b
    ON a.patient = b.patient
  WHERE
    a.day < b.day
  GROUP BY
    a.patient
)
SELECT
  COALESCE(MAX(results), 0)
FROM per_boundary_value;

-- {a, c} and {b, c}, boundary a.patient
WITH per_boundary_value AS (
  SELECT
    COUNT(*) AS results
  FROM main.visit AS a
  JOIN main.visit AS c
    ON a.patient = c.patient
  GROUP BY
    a.patient
)
SELECT
  COALESCE(MAX(results), 0)
FROM per_boundary_value;
