-- the query
SELECT count(*) FROM visit a JOIN visit b USING (patient) WHERE abs(datediff(a.day, b.day)) <= 1;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`patient` = `b`.`patient`
WHERE
  ABS(DATEDIFF(`a`.`day`, `b`.`day`)) <= 1;

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
