-- the query
SELECT count(*) FROM (SELECT DISTINCT v.hospital, p.city FROM visit v JOIN person p ON v.patient = p.id) AS d;

-- the count
SELECT
  COUNT(*) AS `results`
FROM (
  SELECT DISTINCT
    `d_p`.`city` AS `v0`,
    `d_v`.`hospital` AS `v1`
  FROM `visit` AS `d_v`
  JOIN `person` AS `d_p`
    ON `d_v`.`patient` = `d_p`.`id`
) AS `distinct_outputs`;

-- {d_v}, boundary d_v.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM (
    SELECT DISTINCT
      `d_v`.`hospital` AS `v0`,
      `d_v`.`patient` AS `v1`
    FROM `visit` AS `d_v`
    WHERE
      NOT `d_v`.`patient` IS NULL
  ) AS `distinct_outputs`
  GROUP BY
    `distinct_outputs`.`v1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
