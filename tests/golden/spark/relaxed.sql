-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient) WHERE a.day < b.day AND b.day < c.day;

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
  AND `a`.`day` < `b`.`day`
  AND `b`.`day` < `c`.`day`;

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
    NOT `a`.`day` IS NULL AND NOT `b`.`day` IS NULL AND `a`.`day` < `b`.`day`
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, c}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  JOIN `visit` AS `c`
    ON `a`.`patient` = `c`.`patient`
  WHERE
    NOT `a`.`day` IS NULL AND NOT `c`.`day` IS NULL
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
