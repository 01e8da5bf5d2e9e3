-- the query
SELECT count(DISTINCT a.cost) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) WHERE a.day < b.day AND b.day < c.day;

-- the count
SELECT
  COUNT(*) AS `results`
FROM (
  SELECT DISTINCT
    `a`.`cost` AS `v0`
  FROM `visit` AS `a`
  JOIN `visit` AS `b`
    ON `a`.`patient` = `b`.`patient`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL
    AND NOT `a`.`day` IS NULL
    AND NOT `b`.`day` IS NULL
    AND NOT `c`.`day` IS NULL
    AND `a`.`day` < `b`.`day`
    AND `b`.`day` < `c`.`day`
) AS `distinct_outputs`;

-- {a}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM (
    SELECT DISTINCT
      `a`.`cost` AS `v0`,
      `a`.`patient` AS `v1`
    FROM `visit` AS `a`
    WHERE
      NOT `a`.`cost` IS NULL AND NOT `a`.`day` IS NULL AND NOT `a`.`patient` IS NULL
  ) AS `distinct_outputs`
  GROUP BY
    `distinct_outputs`.`v1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM (
    SELECT DISTINCT
      `a`.`cost` AS `v0`,
      `a`.`patient` AS `v1`
    FROM `visit` AS `a`
    JOIN `visit` AS `b`
      ON `a`.`patient` = `b`.`patient`
    WHERE
      NOT `a`.`cost` IS NULL
      AND NOT `a`.`day` IS NULL
      AND NOT `b`.`day` IS NULL
      AND `a`.`day` < `b`.`day`
  ) AS `distinct_outputs`
  GROUP BY
    `distinct_outputs`.`v1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, c}, boundary a.patient
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`patient` AS `b0`,
    `a`.`day` AS `x0`,
    `c`.`day` AS `x1`,
    `a`.`cost` AS `o0`
  FROM `visit` AS `a`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `a`.`day` IS NULL AND NOT `c`.`day` IS NULL
  GROUP BY
    `a`.`patient`,
    `a`.`day`,
    `c`.`day`,
    `a`.`cost`
), `numbered_rows` AS (
  SELECT
    `grouped_rows`.`b0`,
    `grouped_rows`.`o0`,
    `grouped_rows`.`results`,
    CAST(COALESCE(DATEDIFF(`grouped_rows`.`x0`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT) AS `x0`,
    CAST(COALESCE(DATEDIFF(`grouped_rows`.`x1`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT) AS `x1`
  FROM `grouped_rows` AS `grouped_rows`
), `choices_z0` AS (
  SELECT
    `b0`,
    `x0` AS `z0`
  FROM `numbered_rows` AS `numbered_rows`
  UNION
  SELECT
    `b0`,
    `x0` + 1 AS `z0`
  FROM `numbered_rows` AS `numbered_rows`
), `per_choice` AS (
  SELECT
    COUNT(*) AS `results`
  FROM (
    SELECT DISTINCT
      `numbered_rows`.`b0`,
      `z0`,
      `numbered_rows`.`o0`
    FROM `numbered_rows` AS `numbered_rows`
    JOIN `choices_z0` AS `choices_z0`
      ON `choices_z0`.`b0` = `numbered_rows`.`b0`
    WHERE
      `x0` < `z0` AND `z0` < `x1`
  ) AS `distinct_outputs`
  GROUP BY
    `b0`,
    `z0`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_choice`;
