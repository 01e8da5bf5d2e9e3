-- the query
SELECT count(*) FROM visit v JOIN person p ON v.patient = p.id;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `v`
JOIN `person` AS `p`
  ON `v`.`patient` = `p`.`id`;

-- {v}, boundary v.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `v`
  WHERE
    NOT `v`.`patient` IS NULL
  GROUP BY
    `v`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
