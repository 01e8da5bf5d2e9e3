-- link(a, b): the directed rows of a symmetric graph without loops, defined by the caller.
WITH degree AS (
  SELECT link.a, count(*) AS degree
  FROM link
  GROUP BY link.a
),
wedge AS (
  SELECT one.a, other.b, count(*) AS common
  FROM link AS one
  JOIN link AS other ON one.b = other.a
  WHERE one.a < other.b
  GROUP BY one.a, other.b
),
ranked AS (
  SELECT degree.a, row_number() OVER (ORDER BY degree.degree DESC) AS place
  FROM degree
),
highest AS (
  SELECT ranked.a
  FROM ranked
  WHERE ranked.place <= (SELECT max(degree.degree) + 2 FROM degree)
),
pair AS (
  SELECT wedge.a, wedge.b, wedge.common FROM wedge
  UNION ALL
  SELECT link.a, link.b, 0 FROM link WHERE link.a < link.b
  UNION ALL
  SELECT one.a, other.a, 0 FROM highest AS one JOIN highest AS other ON one.a < other.a
),
measured AS (
  SELECT
    pair.common,
    one.degree + other.degree - CASE WHEN link.a IS NULL THEN 0 ELSE 2 END AS reach
  FROM pair
  JOIN degree AS one ON one.a = pair.a
  JOIN degree AS other ON other.a = pair.b
  LEFT JOIN link ON link.a = pair.a AND link.b = pair.b
  UNION ALL
  -- a node beside one that has no edge yet
  SELECT 0, degree.degree FROM degree
)
SELECT measured.common, max(measured.reach) AS reach
FROM measured
GROUP BY measured.common
