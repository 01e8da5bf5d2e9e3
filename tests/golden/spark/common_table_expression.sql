-- the query
WITH near AS (SELECT dst FROM edge WHERE src = 1) SELECT count(*) FROM near JOIN edge ON near.dst = edge.src;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `near_edge`
JOIN `edge` AS `edge`
  ON `near_edge`.`dst` = `edge`.`src`
WHERE
  `near_edge`.`src` = 1;

-- {edge}, boundary near_edge.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `edge`
  GROUP BY
    `edge`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
