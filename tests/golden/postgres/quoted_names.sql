-- the query
SELECT count(*) FROM "Order" AS "from" JOIN "Order" AS "b c" ON "from"."größe" = "b c"."größe" WHERE "from"."a ""b""" <= "b c"."a ""b""";

-- the count
SELECT
  COUNT(*) AS results
FROM public."Order" AS "from"
JOIN public."Order" AS "b c"
  ON "from"."größe" = "b c"."größe"
WHERE
  "from"."a ""b""" <= "b c"."a ""b""";

-- {from} and {b c}, boundary from.größe
WITH per_boundary_value AS (
  SELECT
    COUNT(*) AS results
  FROM public."Order" AS "from"
  GROUP BY
    "from"."größe"
)
SELECT
  COALESCE(MAX(results), 0)
FROM per_boundary_value;
