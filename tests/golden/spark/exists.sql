-- the query
SELECT count(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.patient = p.id AND v.day > p.born);

-- the count
SELECT
  COUNT(*) AS `results`
FROM (
  SELECT DISTINCT
    `p`.`id` AS `v0`
  FROM `person` AS `p`
  JOIN `visit` AS `v`
    ON `p`.`id` = `v`.`patient`
  WHERE
    NOT `p`.`born` IS NULL AND NOT `v`.`day` IS NULL AND `p`.`born` < `v`.`day`
) AS `distinct_outputs`;
