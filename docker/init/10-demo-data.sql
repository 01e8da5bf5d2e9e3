-- A graph to try sqlrs on: 2,000 people in 1,200 small groups, popular ones in many. The same on every machine.
CREATE TABLE edge (
  src integer NOT NULL,
  dst integer NOT NULL,
  PRIMARY KEY (src, dst)
);

INSERT INTO edge
WITH seat AS (
  SELECT
    circle,
    (2000 * (abs(hashint8(circle * 10 + place)::bigint) / 2147483648.0) ^ 1.5)::integer AS person
  FROM generate_series(1, 1200) AS circle
  CROSS JOIN generate_series(1, 6) AS place
  WHERE place <= 2 + circle % 5
)
SELECT DISTINCT one.person, other.person
FROM seat AS one
JOIN seat AS other ON one.circle = other.circle AND one.person <> other.person;

ANALYZE edge;
