-- the query
SELECT count(*) FROM edge a JOIN edge b USING (src);

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`src` = `b`.`src`;

-- {a} and {b}, boundary a.src
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  GROUP BY
    `a`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
