-- the query
SELECT count(*) FROM edge a CROSS JOIN person p;

-- the count
SELECT
  COUNT(*) AS results
FROM public.edge AS a
CROSS JOIN public.person AS p;

-- {a}
SELECT
  COUNT(*) AS results
FROM public.edge AS a;

-- {p}
SELECT
  COUNT(*) AS results
FROM public.person AS p;
