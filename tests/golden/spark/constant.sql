-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.dst = 3;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
CROSS JOIN `edge` AS `b`
WHERE
  `a`.`dst` = 3 AND `b`.`src` = 3;

-- {a}
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
WHERE
  `a`.`dst` = 3;

-- {b}
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `b`
WHERE
  `b`.`src` = 3;
