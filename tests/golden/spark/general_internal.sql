-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) WHERE a.cost + b.cost < 40;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`patient` = `b`.`patient`
JOIN `visit` AS `c`
  ON `a`.`patient` = `c`.`patient`
WHERE
  `a`.`cost` + `b`.`cost` < 40;

-- {a} and {b}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`patient` IS NULL
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `c`
  WHERE
    NOT `c`.`patient` IS NULL
  GROUP BY
    `c`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  JOIN `visit` AS `b`
    ON `a`.`patient` = `b`.`patient`
  WHERE
    `a`.`cost` + `b`.`cost` < 40
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, c} and {b, c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
