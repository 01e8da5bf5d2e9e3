-- the query
SELECT count(*) FROM edge a CROSS JOIN person p;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
CROSS JOIN `person` AS `p`;

-- {a}
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`;

-- {p}
SELECT
  COUNT(*) AS `results`
FROM `person` AS `p`;
