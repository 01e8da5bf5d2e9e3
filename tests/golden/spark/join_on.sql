-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`dst` = `b`.`src`;

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
