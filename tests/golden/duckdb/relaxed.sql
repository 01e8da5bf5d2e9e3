-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) WHERE a.day < b.day AND b.day < c.day;

-- the count
SELECT
  COUNT(*) AS results
FROM main.visit AS a
JOIN main.visit AS b
  ON a.patient = b.patient
JOIN main.visit AS c
  ON a.patient = c.patient
WHERE
  a.day < b.day AND b.day < c.day;

-- {a} and {b} and {c}, boundary a.patient
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

-- {a, b} and {b, c}, boundary a.patient
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

-- {a, c}, boundary a.patient
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
