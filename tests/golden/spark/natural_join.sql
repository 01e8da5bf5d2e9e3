-- the query
SELECT count(*) FROM edge a NATURAL JOIN edge b;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`src` = `b`.`src` AND `a`.`dst` = `b`.`dst`;
