-- the query
SELECT count(*) FROM visit a JOIN visit b ON a.hospital = b.hospital WHERE a.cost <> b.cost;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `visit` AS `a`
JOIN `visit` AS `b`
  ON `a`.`hospital` = `b`.`hospital`
WHERE
  NOT `a`.`cost` IS NULL AND NOT `b`.`cost` IS NULL AND `a`.`cost` <> `b`.`cost`;

-- {a} and {b}, boundary a.hospital
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `visit` AS `a`
  WHERE
    NOT `a`.`cost` IS NULL AND NOT `a`.`hospital` IS NULL
  GROUP BY
    `a`.`hospital`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
