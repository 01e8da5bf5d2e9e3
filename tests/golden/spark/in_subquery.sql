-- the query
SELECT count(*) FROM person p WHERE p.id IN (SELECT patient FROM visit WHERE hospital = 'm');

-- the count
SELECT
  COUNT(*) AS `results`
FROM (
  SELECT DISTINCT
    `p`.`id` AS `v0`
  FROM `person` AS `p`
  JOIN `visit` AS `visit`
    ON `p`.`id` = `visit`.`patient`
  WHERE
    `visit`.`hospital` = 'm'
) AS `distinct_outputs`;
