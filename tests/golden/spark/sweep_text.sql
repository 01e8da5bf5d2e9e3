-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) WHERE a.hospital < b.hospital AND b.hospital < c.hospital;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`patient` = `b`.`patient`
JOIN `visit` AS `c`
  ON `a`.`patient` = `c`.`patient`
WHERE
  NOT `a`.`hospital` IS NULL
  AND NOT `b`.`hospital` IS NULL
  AND NOT `c`.`hospital` IS NULL
  AND `a`.`hospital` < `b`.`hospital`
  AND `b`.`hospital` < `c`.`hospital`;

-- {a} and {b} and {c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`hospital` IS NULL AND NOT `a`.`patient` IS NULL
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
    NOT `a`.`hospital` IS NULL
    AND NOT `b`.`hospital` IS NULL
    AND `a`.`hospital` < `b`.`hospital`
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
    `a`.`hospital` AS `x0`,
    `c`.`hospital` AS `x1`
  FROM `visit` AS `a`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  WHERE
    NOT `a`.`hospital` IS NULL AND NOT `c`.`hospital` IS NULL
  GROUP BY
    `a`.`patient`,
    `a`.`hospital`,
    `c`.`hospital`
), `intervals` AS (
  SELECT
    `b0`,
    `x0` AS `low`,
    1 AS `low_phase`,
    `x1` AS `high`,
    -1 AS `high_phase`,
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
