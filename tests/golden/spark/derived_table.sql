-- the query
SELECT count(*) FROM (SELECT src AS x, dst AS y FROM edge WHERE src < 4) d JOIN edge e ON d.y = e.src;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `d_edge`
JOIN `edge` AS `e`
  ON `d_edge`.`dst` = `e`.`src`
WHERE
  `d_edge`.`src` < 4;

-- {d_edge}, boundary d_edge.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `d_edge`
  WHERE
    `d_edge`.`src` < 4
  GROUP BY
    `d_edge`.`dst`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {e}, boundary d_edge.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `e`
  GROUP BY
    `e`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
