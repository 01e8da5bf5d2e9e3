-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src AND c.dst = a.src;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`dst` = `b`.`src`
JOIN `edge` AS `c`
  ON `b`.`dst` = `c`.`src` AND `a`.`src` = `c`.`dst`;

-- {a, b} and {a, c} and {b, c}, boundary a.src, b.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  JOIN `edge` AS `b`
    ON `a`.`dst` = `b`.`src`
  GROUP BY
    `a`.`src`,
    `b`.`dst`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
