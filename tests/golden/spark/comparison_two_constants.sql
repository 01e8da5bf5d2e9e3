-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) WHERE a.cost < 10 AND b.cost < 30;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`patient` = `b`.`patient`
WHERE
  NOT `a`.`cost` IS NULL
  AND NOT `b`.`cost` IS NULL
  AND `a`.`cost` < 10
  AND `b`.`cost` < 30;

-- {a}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `a`.`patient` IS NULL AND `a`.`cost` < 10
  GROUP BY
    `a`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {b}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `b`
  WHERE
    NOT `b`.`patient` IS NULL AND NOT `b`.`cost` IS NULL AND `b`.`cost` < 30
  GROUP BY
    `b`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
