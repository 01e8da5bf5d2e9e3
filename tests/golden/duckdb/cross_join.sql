-- the query
SELECT count(*) FROM edge a CROSS JOIN person p;

-- the count
SELECT
  COUNT(*) AS results
FROM main.edge AS a
CROSS JOIN main.person AS p;

-- {a}
SELECT
  COUNT(*) AS results
FROM main.edge AS a;

-- {p}
SELECT
  COUNT(*) AS results
FROM main.person AS p;
