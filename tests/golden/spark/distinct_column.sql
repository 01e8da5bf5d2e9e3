-- the query
SELECT count(DISTINCT a.hospital) FROM visit a JOIN visit b USING (patient) WHERE a.day <> b.day;

-- the count
SELECT
  COUNT(*) AS `results`
FROM (
  SELECT DISTINCT
    `a`.`hospital` AS `v0`
  FROM `visit` AS `a`
  JOIN `visit` AS `b`
    ON `a`.`patient` = `b`.`patient`
  WHERE
    NOT `a`.`hospital` IS NULL
    AND NOT `a`.`day` IS NULL
    AND NOT `b`.`day` IS NULL
    AND `a`.`day` <> `b`.`day`
) AS `distinct_outputs`;

-- {a}, boundary a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM (
    SELECT DISTINCT
      `a`.`hospital` AS `v0`,
      `a`.`patient` AS `v1`
    FROM `visit` AS `a`
    WHERE
      NOT `a`.`hospital` IS NULL AND NOT `a`.`day` IS NULL AND NOT `a`.`patient` IS NULL
  ) AS `distinct_outputs`
  GROUP BY
    `distinct_outputs`.`v1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
