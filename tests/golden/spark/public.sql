-- the query
SELECT count(*) FROM person p JOIN city c ON p.city = c.name JOIN visit v ON v.patient = p.id;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `person` AS `p`
JOIN `city` AS `c`
  ON `p`.`city` = `c`.`name`
JOIN `visit` AS `v`
  ON `p`.`id` = `v`.`patient`;

-- {v}, boundary p.id
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
