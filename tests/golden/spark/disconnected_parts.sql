-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src, person p JOIN visit v ON p.id = v.patient;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`dst` = `b`.`src`
CROSS JOIN `person` AS `p`
JOIN `visit` AS `v`
  ON `p`.`id` = `v`.`patient`;

-- {a}, boundary a.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  GROUP BY
    `a`.`dst`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {b}, boundary a.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `b`
  GROUP BY
    `b`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

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

-- {a, b}
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`dst` = `b`.`src`;

-- {p, v}
SELECT
  COUNT(*) AS `results`
FROM `person` AS `p`
JOIN `visit` AS `v`
  ON `p`.`id` = `v`.`patient`;
