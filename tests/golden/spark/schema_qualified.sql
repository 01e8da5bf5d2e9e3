-- the query
SELECT count(*) FROM clinic.room a JOIN clinic.room b USING (floor);

-- the count
SELECT
  COUNT(*) AS `results`
FROM `clinic`.`room` AS `a`
JOIN `clinic`.`room` AS `b`
  ON `a`.`floor` = `b`.`floor`;

-- {a} and {b}, boundary a.floor
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `clinic`.`room` AS `a`
  WHERE
    NOT `a`.`floor` IS NULL
  GROUP BY
    `a`.`floor`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
