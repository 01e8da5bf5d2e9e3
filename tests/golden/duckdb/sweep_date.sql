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
WITH grouped_rows AS (
  SELECT
    COUNT(*) AS results,
    a.patient AS b0,
    a.day AS x0,
    c.day AS x1
  FROM main.visit AS a
  JOIN main.visit AS c
    ON a.patient = c.patient
  GROUP BY
    a.patient,
    a.day,
    c.day
), intervals AS (
  SELECT
    b0,
    CAST(CASE
      WHEN ISFINITE(x0)
      THEN x0 - CAST('1970-01-01' AS DATE)
      WHEN x0 > CAST('1970-01-01' AS DATE)
      THEN 2147483647
      ELSE -2147483647
    END AS BIGINT) + 1 AS low,
    0 AS low_phase,
    CAST(CASE
      WHEN ISFINITE(x1)
      THEN x1 - CAST('1970-01-01' AS DATE)
      WHEN x1 > CAST('1970-01-01' AS DATE)
      THEN 2147483647
      ELSE -2147483647
    END AS BIGINT) - 1 AS high,
    0 AS high_phase,
    results
  FROM grouped_rows
), steps AS (
  SELECT
    b0,
    low AS place,
    low_phase AS phase,
    0 AS closing,
    results AS change
  FROM intervals
  WHERE
    low < high OR (
      low = high AND low_phase <= high_phase
    )
  UNION ALL
  SELECT
    b0,
    high AS place,
    high_phase AS phase,
    1 AS closing,
    -results AS change
  FROM intervals
  WHERE
    low < high OR (
      low = high AND low_phase <= high_phase
    )
), changes AS (
  SELECT
    b0,
    place,
    phase,
    closing,
    SUM(change) AS change
  FROM steps
  GROUP BY
    b0,
    place,
    phase,
    closing
), overlapping AS (
  SELECT
    SUM(change) OVER (PARTITION BY b0 ORDER BY place ASC, phase ASC, closing ASC) AS results
  FROM changes
)
SELECT
  COALESCE(MAX(results), 0)
FROM overlapping;
