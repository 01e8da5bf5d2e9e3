-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) WHERE abs(a.day - b.day) <= 1;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`patient` = `b`.`patient`
WHERE
  ABS(`a`.`day` - `b`.`day`) <= 1;

-- {a}, boundary a.patient, whose rows the solver reads
SELECT
  `results`,
  CAST(DENSE_RANK() OVER (ORDER BY `b0` ASC NULLS LAST) AS BIGINT),
  1,
  CAST(COALESCE(DATEDIFF(`x0`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT)
FROM (
  SELECT
    COUNT(*) AS `results`,
    `a`.`patient` AS `b0`,
    `a`.`day` AS `x0`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`patient` IS NULL
  GROUP BY
    `a`.`patient`,
    `a`.`day`
) AS `grouped_rows`;

-- {b}, boundary a.patient, whose rows the solver reads
SELECT
  `results`,
  CAST(DENSE_RANK() OVER (ORDER BY `b0` ASC NULLS LAST) AS BIGINT),
  1,
  CAST(COALESCE(DATEDIFF(`x0`, CAST('1970-01-01' AS DATE)), -2147483647) AS BIGINT)
FROM (
  SELECT
    COUNT(*) AS `results`,
    `b`.`patient` AS `b0`,
    `b`.`day` AS `x0`
  FROM `visit` AS `b`
  WHERE
    NOT `b`.`patient` IS NULL
  GROUP BY
    `b`.`patient`,
    `b`.`day`
) AS `grouped_rows`;
