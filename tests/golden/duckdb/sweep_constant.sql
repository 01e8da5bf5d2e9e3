-- the query
SELECT count(*) FROM visit a, visit b WHERE a.day < b.day AND b.day <= DATE '2024-02-28';

-- the count
SELECT
  COUNT(*) AS results
FROM main.visit AS a
CROSS JOIN main.visit AS b
WHERE
  a.day < b.day AND b.day <= CAST('2024-02-28' AS DATE);

-- {a}
WITH grouped_rows AS (
  SELECT
    COUNT(*) AS results,
    a.day AS x0
  FROM main.visit AS a
  GROUP BY
    a.day
), intervals AS (
  SELECT
    CAST(CASE
      WHEN ISFINITE(x0)
      THEN x0 - CAST('1970-01-01' AS DATE)
      WHEN x0 > CAST('1970-01-01' AS DATE)
      THEN 2147483647
      ELSE -2147483647
    END AS BIGINT) + 1 AS low,
    0 AS low_phase,
    19781 AS high,
    0 AS high_phase,
    results
  FROM grouped_rows
), steps AS (
  SELECT
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
    place,
    phase,
    closing,
    SUM(change) AS change
  FROM steps
  GROUP BY
    place,
    phase,
    closing
), overlapping AS (
  SELECT
    SUM(change) OVER (ORDER BY place ASC, phase ASC, closing ASC) AS results
  FROM changes
)
SELECT
  COALESCE(MAX(results), 0)
FROM overlapping;

-- {b}
SELECT
  COUNT(*) AS results
FROM main.visit AS b
WHERE
  b.day <= CAST('2024-02-28' AS DATE);
