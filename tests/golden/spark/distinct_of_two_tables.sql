-- the query
SELECT count(*) FROM (SELECT DISTINCT a.hospital, b.day FROM visit a JOIN visit b USING (patient) WHERE a.hospital <> b.hospital AND a.day <> b.day) AS d;

-- the count
SELECT
  COUNT(*) AS `results`
FROM (
  SELECT DISTINCT
    `d_a`.`hospital` AS `v0`,
    `d_b`.`day` AS `v1`
  FROM `visit` AS `d_a`
  JOIN `visit` AS `d_b`
    ON `d_a`.`patient` = `d_b`.`patient`
  WHERE
    NOT `d_a`.`day` IS NULL
    AND NOT `d_a`.`hospital` IS NULL
    AND NOT `d_b`.`day` IS NULL
    AND NOT `d_b`.`hospital` IS NULL
    AND `d_a`.`day` <> `d_b`.`day`
    AND `d_a`.`hospital` <> `d_b`.`hospital`
) AS `distinct_outputs`;

-- {d_a}, boundary d_a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM (
    SELECT DISTINCT
      `d_a`.`hospital` AS `v0`,
      `d_a`.`patient` AS `v1`
    FROM `visit` AS `d_a`
    WHERE
      NOT `d_a`.`day` IS NULL
      AND NOT `d_a`.`hospital` IS NULL
      AND NOT `d_a`.`patient` IS NULL
  ) AS `distinct_outputs`
  GROUP BY
    `distinct_outputs`.`v1`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {d_b}, boundary d_a.patient
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM (
    SELECT DISTINCT
      `d_b`.`patient` AS `v0`,
      `d_b`.`day` AS `v1`
    FROM `visit` AS `d_b`
    WHERE
      NOT `d_b`.`patient` IS NULL
      AND NOT `d_b`.`day` IS NULL
      AND NOT `d_b`.`hospital` IS NULL
  ) AS `distinct_outputs`
  GROUP BY
    `distinct_outputs`.`v0`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
