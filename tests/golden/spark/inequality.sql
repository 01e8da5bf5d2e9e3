-- the query
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src WHERE a.src <> b.dst AND a.src <> c.dst AND a.dst <> c.dst;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `edge` AS `a`
JOIN `edge` AS `b`
  ON `a`.`dst` = `b`.`src`
JOIN `edge` AS `c`
  ON `b`.`dst` = `c`.`src`
WHERE
  `a`.`dst` <> `c`.`dst` AND `a`.`src` <> `b`.`dst` AND `a`.`src` <> `c`.`dst`;

-- {a}, boundary a.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  GROUP BY
    `a`.`dst`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {c}, boundary b.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `c`
  GROUP BY
    `c`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {a, b}, boundary b.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `a`
  JOIN `edge` AS `b`
    ON `a`.`dst` = `b`.`src`
  WHERE
    `a`.`src` <> `b`.`dst`
  GROUP BY
    `b`.`dst`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;

-- {b, c}, boundary a.dst
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `edge` AS `b`
  JOIN `edge` AS `c`
    ON `b`.`dst` = `c`.`src`
  WHERE
    `b`.`src` <> `c`.`dst`
  GROUP BY
    `b`.`src`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
