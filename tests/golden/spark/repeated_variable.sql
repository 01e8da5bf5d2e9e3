-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.src = a.dst;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`src` = `b`.`src`
WHERE
  `a`.`src` = `a`.`dst`;

-- {b}, boundary a.src
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
