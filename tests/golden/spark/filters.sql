-- the query
SELECT count(*) FROM visit v JOIN person p ON v.patient = p.id WHERE (v.hospital LIKE 'p%' OR v.cost > 6) AND p.city IN ('A', 'B') AND v.patient % 2 = 1;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `v`
JOIN `person` AS `p`
  ON `v`.`patient` = `p`.`id`
WHERE
  (
    `v`.`hospital` LIKE 'p%' OR `v`.`cost` > 6
  )
  AND `v`.`patient` % 2 = 1
  AND `p`.`city` IN ('A', 'B')
  AND `p`.`id` % 2 = 1;

-- {v}, boundary v.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `v`
  WHERE
    (
      `v`.`hospital` LIKE 'p%' OR `v`.`cost` > 6
    )
    AND `v`.`patient` % 2 = 1
    AND NOT `v`.`patient` IS NULL
  GROUP BY
    `v`.`patient`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
