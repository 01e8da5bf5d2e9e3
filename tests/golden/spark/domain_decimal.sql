-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) JOIN visit d USING (patient) WHERE a.cost < b.cost AND b.cost <= c.cost AND c.cost < d.cost;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`patient` = `b`.`patient`
JOIN `visit` AS `c`
  ON `a`.`patient` = `c`.`patient`
JOIN `visit` AS `d`
  ON `a`.`patient` = `d`.`patient`
WHERE
  NOT `a`.`cost` IS NULL
  AND NOT `b`.`cost` IS NULL
  AND NOT `c`.`cost` IS NULL
  AND NOT `d`.`cost` IS NULL
  AND `a`.`cost` < `b`.`cost`
  AND `b`.`cost` <= `c`.`cost`
  AND `c`.`cost` < `d`.`cost`;

-- {a} and {b} and {c} and {d}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `a`.`patient` IS NULL
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b} and {c, d}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  JOIN `visit` AS `b`
    ON `a`.`patient` = `b`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `b`.`cost` IS NULL AND `a`.`cost` < `b`.`cost`
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
    `a`.`cost` AS `x0`,
    `c`.`cost` AS `x1`
  FROM `visit` AS `a`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `c`.`cost` IS NULL
  GROUP BY
    `a`.`patient`,
    `a`.`cost`,
    `c`.`cost`
), `intervals` AS (
  SELECT
    `b0`,
    `x0` AS `low`,
    1 AS `low_phase`,
    `x1` AS `high`,
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

-- {a, d}, boundary a.patient
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`patient` AS `b0`,
    `a`.`cost` AS `x0`,
    `d`.`cost` AS `x1`
  FROM `visit` AS `a`
  JOIN `visit` AS `d`
    ON `a`.`patient` = `d`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `d`.`cost` IS NULL
  GROUP BY
    `a`.`patient`,
    `a`.`cost`,
    `d`.`cost`
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
        `x1` AS `value`
      FROM `grouped_rows` AS `grouped_rows`
    ) AS `active_values`
    GROUP BY
      `value`
  ) AS `different_values`
), `numbered_rows` AS (
  SELECT
    `grouped_rows`.`b0`,
    `grouped_rows`.`results`,
    `of_x0`.`place` AS `x0`,
    `of_x1`.`place` AS `x1`
  FROM `grouped_rows` AS `grouped_rows`
  JOIN `domain0` AS `of_x0`
    ON `of_x0`.`value` = `grouped_rows`.`x0`
  JOIN `domain0` AS `of_x1`
    ON `of_x1`.`value` = `grouped_rows`.`x1`
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
    `x0` < `z0` AND `z0` <= `z1` AND `z1` < `x1`
  GROUP BY
    `numbered_rows`.`b0`,
    `z0`,
    `z1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_choice`;

-- {b, c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `b`
  JOIN `visit` AS `c`
    ON `b`.`patient` = `c`.`patient`
  WHERE
    NOT `b`.`cost` IS NULL AND NOT `c`.`cost` IS NULL AND `b`.`cost` <= `c`.`cost`
  GROUP BY
    `b`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {b, d}, boundary a.patient
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `b`.`patient` AS `b0`,
    `b`.`cost` AS `x0`,
    `d`.`cost` AS `x1`
  FROM `visit` AS `b`
  JOIN `visit` AS `d`
    ON `b`.`patient` = `d`.`patient`
  WHERE
    NOT `b`.`cost` IS NULL AND NOT `d`.`cost` IS NULL
  GROUP BY
    `b`.`patient`,
    `b`.`cost`,
    `d`.`cost`
), `intervals` AS (
  SELECT
    `b0`,
    `x0` AS `low`,
    0 AS `low_phase`,
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

-- {a, b, c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  JOIN `visit` AS `b`
    ON `a`.`patient` = `b`.`patient`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL
    AND NOT `b`.`cost` IS NULL
    AND NOT `c`.`cost` IS NULL
    AND `a`.`cost` < `b`.`cost`
    AND `b`.`cost` <= `c`.`cost`
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b, d}, boundary a.patient
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`patient` AS `b0`,
    `b`.`cost` AS `x0`,
    `d`.`cost` AS `x1`
  FROM `visit` AS `a`
  JOIN `visit` AS `b`
    ON `a`.`patient` = `b`.`patient`
  JOIN `visit` AS `d`
    ON `a`.`patient` = `d`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL
    AND NOT `b`.`cost` IS NULL
    AND NOT `d`.`cost` IS NULL
    AND `a`.`cost` < `b`.`cost`
  GROUP BY
    `a`.`patient`,
    `b`.`cost`,
    `d`.`cost`
), `intervals` AS (
  SELECT
    `b0`,
    `x0` AS `low`,
    0 AS `low_phase`,
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

-- {a, c, d}, boundary a.patient
WITH `grouped_rows` AS (
  SELECT
    COUNT(*) AS `results`,
    `a`.`patient` AS `b0`,
    `a`.`cost` AS `x0`,
    `c`.`cost` AS `x1`
  FROM `visit` AS `a`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  JOIN `visit` AS `d`
    ON `a`.`patient` = `d`.`patient`
  WHERE
    NOT `a`.`cost` IS NULL
    AND NOT `c`.`cost` IS NULL
    AND NOT `d`.`cost` IS NULL
    AND `c`.`cost` < `d`.`cost`
  GROUP BY
    `a`.`patient`,
    `a`.`cost`,
    `c`.`cost`
), `intervals` AS (
  SELECT
    `b0`,
    `x0` AS `low`,
    1 AS `low_phase`,
    `x1` AS `high`,
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

-- {b, c, d}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `b`
  JOIN `visit` AS `c`
    ON `b`.`patient` = `c`.`patient`
  JOIN `visit` AS `d`
    ON `b`.`patient` = `d`.`patient`
  WHERE
    NOT `b`.`cost` IS NULL
    AND NOT `c`.`cost` IS NULL
    AND NOT `d`.`cost` IS NULL
    AND `b`.`cost` <= `c`.`cost`
    AND `c`.`cost` < `d`.`cost`
  GROUP BY
    `b`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
