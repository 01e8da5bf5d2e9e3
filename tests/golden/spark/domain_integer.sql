-- the query
SELECT count(*) FROM edge a JOIN edge b USING (src) JOIN edge c USING (src) JOIN edge d USING (src) WHERE a.dst < b.dst AND b.dst < c.dst AND c.dst < d.dst;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`src` = `b`.`src`
JOIN `edge` AS `c`
  ON `a`.`src` = `c`.`src`
JOIN `edge` AS `d`
  ON `a`.`src` = `d`.`src`
WHERE
  `a`.`dst` < `b`.`dst` AND `b`.`dst` < `c`.`dst` AND `c`.`dst` < `d`.`dst`;

-- {a} and {b} and {c} and {d}, boundary a.src
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  GROUP BY
    `a`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b} and {b, c} and {c, d}, boundary a.src
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  JOIN `edge` AS `b`
    ON `a`.`src` = `b`.`src`
  WHERE
    `a`.`dst` < `b`.`dst`
  GROUP BY
    `a`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, c} and {b, d}, boundary a.src
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`src` AS `b0`,
    `a`.`dst` AS `x0`,
    `c`.`dst` AS `x1`
  FROM `edge` AS `a`
  JOIN `edge` AS `c`
    ON `a`.`src` = `c`.`src`
  GROUP BY
    `a`.`src`,
    `a`.`dst`,
    `c`.`dst`
), `intervals` AS (
  SELECT
    `b0`,
    CAST(`x0` AS DECIMAL(38, 0)) + 1 AS `low`,
    0 AS `low_phase`,
    CAST(`x1` AS DECIMAL(38, 0)) - 1 AS `high`,
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

-- {a, d}, boundary a.src
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`src` AS `b0`,
    `a`.`dst` AS `x0`,
    `d`.`dst` AS `x1`
  FROM `edge` AS `a`
  JOIN `edge` AS `d`
    ON `a`.`src` = `d`.`src`
  GROUP BY
    `a`.`src`,
    `a`.`dst`,
    `d`.`dst`
), `numbered_rows` AS (
  SELECT
    `grouped_rows`.`b0`,
    `grouped_rows`.`results`,
    CAST(`grouped_rows`.`x0` AS DECIMAL(38, 0)) AS `x0`,
    CAST(`grouped_rows`.`x1` AS DECIMAL(38, 0)) AS `x1`
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
), `choices_z1` AS (
  SELECT
    `b0`,
    `x0` AS `z1`
  FROM `numbered_rows` AS `numbered_rows`
  UNION
  SELECT
    `b0`,
    `x0` + 1 AS `z1`
  FROM `numbered_rows` AS `numbered_rows`
  UNION
  SELECT
    `b0`,
    `x0` + 2 AS `z1`
  FROM `numbered_rows` AS `numbered_rows`
), `per_choice` AS (
  SELECT
    SUM(CAST(`numbered_rows`.`results` AS DECIMAL(38, 0))) AS `results`
  FROM `numbered_rows` AS `numbered_rows`
  JOIN `choices_z0` AS `choices_z0`
    ON `choices_z0`.`b0` = `numbered_rows`.`b0`
  JOIN `choices_z1` AS `choices_z1`
    ON `choices_z1`.`b0` = `numbered_rows`.`b0`
  WHERE
    `x0` < `z0` AND `z0` < `z1` AND `z1` < `x1`
  GROUP BY
    `numbered_rows`.`b0`,
    `z0`,
    `z1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_choice`;

-- {a, b, c} and {b, c, d}, boundary a.src
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  JOIN `edge` AS `b`
    ON `a`.`src` = `b`.`src`
  JOIN `edge` AS `c`
    ON `a`.`src` = `c`.`src`
  WHERE
    `a`.`dst` < `b`.`dst` AND `b`.`dst` < `c`.`dst`
  GROUP BY
    `a`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b, d}, boundary a.src
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`src` AS `b0`,
    `b`.`dst` AS `x0`,
    `d`.`dst` AS `x1`
  FROM `edge` AS `a`
  JOIN `edge` AS `b`
    ON `a`.`src` = `b`.`src`
  JOIN `edge` AS `d`
    ON `a`.`src` = `d`.`src`
  WHERE
    `a`.`dst` < `b`.`dst`
  GROUP BY
    `a`.`src`,
    `b`.`dst`,
    `d`.`dst`
), `intervals` AS (
  SELECT
    `b0`,
    CAST(`x0` AS DECIMAL(38, 0)) + 1 AS `low`,
    0 AS `low_phase`,
    CAST(`x1` AS DECIMAL(38, 0)) - 1 AS `high`,
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

-- {a, c, d}, boundary a.src
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`src` AS `b0`,
    `a`.`dst` AS `x0`,
    `c`.`dst` AS `x1`
  FROM `edge` AS `a`
  JOIN `edge` AS `c`
    ON `a`.`src` = `c`.`src`
  JOIN `edge` AS `d`
    ON `a`.`src` = `d`.`src`
  WHERE
    `c`.`dst` < `d`.`dst`
  GROUP BY
    `a`.`src`,
    `a`.`dst`,
    `c`.`dst`
), `intervals` AS (
  SELECT
    `b0`,
    CAST(`x0` AS DECIMAL(38, 0)) + 1 AS `low`,
    0 AS `low_phase`,
    CAST(`x1` AS DECIMAL(38, 0)) - 1 AS `high`,
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
