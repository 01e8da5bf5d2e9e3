-- the query
SELECT count(*) FROM visit a, visit b WHERE a.day < b.day AND b.day <= DATE '2024-02-28' AND b.cost > a.cost AND b.cost < 25;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
CROSS JOIN `visit` AS `b`
WHERE
  NOT `a`.`cost` IS NULL
  AND NOT `a`.`day` IS NULL
  AND NOT `b`.`cost` IS NULL
  AND NOT `b`.`day` IS NULL
  AND `a`.`cost` < `b`.`cost`
  AND `a`.`day` < `b`.`day`
  AND `b`.`cost` < 25
  AND `b`.`day` <= CAST('2024-02-28' AS DATE);

-- {a}
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`cost` AS `x0`,
    `a`.`day` AS `x1`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `a`.`day` IS NULL
  GROUP BY
    `a`.`cost`,
    `a`.`day`
), `domain0` AS (
  SELECT
    `value`,
    3 * CAST(DENSE_RANK() OVER (ORDER BY `value` ASC NULLS LAST) AS BIGINT) AS `place`
  FROM (
    SELECT
      `value`
    FROM (
      SELECT
        `x0` AS `value`
      FROM `grouped_rows` AS `grouped_rows`
      UNION ALL
      SELECT
        25 AS `value`
    ) AS `active_values`
    GROUP BY
      `value`
  ) AS `different_values`
), `numbered_rows` AS (
  SELECT
    `grouped_rows`.`results`,
    `of_x0`.`place` AS `x0`,
    CAST(COALESCE(DATEDIFF(`grouped_rows`.`x1`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT) AS `x1`
  FROM `grouped_rows` AS `grouped_rows`
  JOIN `domain0` AS `of_x0`
    ON `of_x0`.`value` = `grouped_rows`.`x0`
), `choices_z0` AS (
  SELECT
    `x0` AS `z0`
  FROM `numbered_rows` AS `numbered_rows`
  UNION
  SELECT
    `x0` + 1 AS `z0`
  FROM `numbered_rows` AS `numbered_rows`
), `choices_z1` AS (
  SELECT
    `x1` AS `z1`
  FROM `numbered_rows` AS `numbered_rows`
  UNION
  SELECT
    `x1` + 1 AS `z1`
  FROM `numbered_rows` AS `numbered_rows`
), `per_choice` AS (
  SELECT
    SUM(CAST(`numbered_rows`.`results` AS DECIMAL(38, 0))) AS `results`
  FROM `numbered_rows` AS `numbered_rows`
  CROSS JOIN `choices_z0` AS `choices_z0`
  CROSS JOIN `choices_z1` AS `choices_z1`
  WHERE
    `x0` < `z0`
    AND `x1` < `z1`
    AND `z0` < (
      SELECT
        `domain0`.`place`
      FROM `domain0` AS `domain0`
      WHERE
        `domain0`.`value` = 25
    )
    AND `z1` <= 19781
  GROUP BY
    `z0`,
    `z1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_choice`;

-- {b}
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `b`
WHERE
  NOT `b`.`cost` IS NULL
  AND NOT `b`.`day` IS NULL
  AND `b`.`cost` < 25
  AND `b`.`day` <= CAST('2024-02-28' AS DATE);
