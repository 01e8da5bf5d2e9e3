-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.dst <= 3 AND b.dst > 1;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`dst` = `b`.`src`
WHERE
  1 < `b`.`dst` AND `a`.`dst` <= 3;

-- {a}, boundary a.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  WHERE
    `a`.`dst` <= 3
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
  WHERE
    1 < `b`.`dst` AND `b`.`src` <= 3
  GROUP BY
    `b`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
