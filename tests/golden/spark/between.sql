-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) WHERE b.day BETWEEN a.day AND c.day;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`patient` = `b`.`patient`
JOIN `visit` AS `c`
  ON `a`.`patient` = `c`.`patient`
WHERE
  NOT `a`.`day` IS NULL
  AND NOT `b`.`day` IS NULL
  AND NOT `c`.`day` IS NULL
  AND `a`.`day` <= `b`.`day`
  AND `b`.`day` <= `c`.`day`;

-- {a} and {b} and {c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`day` IS NULL AND NOT `a`.`patient` IS NULL
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b} and {b, c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  JOIN `visit` AS `b`
    ON `a`.`patient` = `b`.`patient`
  WHERE
    NOT `a`.`day` IS NULL AND NOT `b`.`day` IS NULL AND `a`.`day` <= `b`.`day`
  GROUP BY
    `a`.`patient`
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
    `c`.`day` AS `x1`
  FROM `visit` AS `a`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  WHERE
    NOT `a`.`day` IS NULL AND NOT `c`.`day` IS NULL
  GROUP BY
    `a`.`patient`,
    `a`.`day`,
    `c`.`day`
), `intervals` AS (
  SELECT
    `b0`,
    CAST(COALESCE(DATEDIFF(`x0`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT) AS `low`,
    0 AS `low_phase`,
    CAST(COALESCE(DATEDIFF(`x1`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT) AS `high`,
    0 AS `high_phase`,
    `results`
  FROM `grouped_rows` AS `grouped_rows`
), `steps` AS (
  SELECT
    `b0`,
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
    `b0`,
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
    `b0`,
    `place`,
    `phase`,
    `closing`,
    SUM(CAST(`change` AS DECIMAL(38, 0))) AS `change`
  FROM `steps` AS `steps`
  GROUP BY
    `b0`,
    `place`,
    `phase`,
    `closing`
), `overlapping` AS (
  SELECT
    SUM(CAST(`change` AS DECIMAL(38, 0))) OVER (
      PARTITION BY `b0`
      ORDER BY `place` ASC NULLS LAST, `phase` ASC NULLS LAST, `closing` ASC NULLS LAST
    ) AS `results`
  FROM `changes` AS `changes`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `overlapping` AS `overlapping`;
