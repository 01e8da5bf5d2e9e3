-- the query
SELECT count(*) FROM visit a, visit b WHERE a.day < b.day AND b.day <= DATE '2024-02-28';

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
CROSS JOIN `visit` AS `b`
WHERE
  NOT `a`.`day` IS NULL
  AND NOT `b`.`day` IS NULL
  AND `a`.`day` < `b`.`day`
  AND `b`.`day` <= CAST('2024-02-28' AS DATE);

-- {a}
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`day` AS `x0`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`day` IS NULL
  GROUP BY
    `a`.`day`
), `intervals` AS (
  SELECT
    CAST(COALESCE(DATEDIFF(`x0`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT) + 1 AS `low`,
    0 AS `low_phase`,
    19781 AS `high`,
    0 AS `high_phase`,
    `results`
  FROM `grouped_rows` AS `grouped_rows`
), `steps` AS (
  SELECT
    `low` AS `place`,
    `low_phase` AS `phase`,
    0 AS `closing`,
    `results` AS `change`
  FROM `intervals` AS `intervals`
  WHERE
    `low` < `high` OR (
      `low` = `high` AND `low_phase` <= `high_phase`
    )
  UNION ALL
  SELECT
    `high` AS `place`,
    `high_phase` AS `phase`,
    1 AS `closing`,
    -`results` AS `change`
  FROM `intervals` AS `intervals`
  WHERE
    `low` < `high` OR (
      `low` = `high` AND `low_phase` <= `high_phase`
    )
), `changes` AS (
  SELECT
    `place`,
    `phase`,
    `closing`,
    SUM(CAST(`change` AS DECIMAL(38, 0))) AS `change`
  FROM `steps` AS `steps`
  GROUP BY
    `place`,
    `phase`,
    `closing`
), `overlapping` AS (
  SELECT
    SUM(CAST(`change` AS DECIMAL(38, 0))) OVER (
      ORDER BY `place` ASC NULLS LAST, `phase` ASC NULLS LAST, `closing` ASC NULLS LAST
    ) AS `results`
  FROM `changes` AS `changes`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `overlapping` AS `overlapping`;

-- {b}
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `b`
WHERE
  NOT `b`.`day` IS NULL AND `b`.`day` <= CAST('2024-02-28' AS DATE);
