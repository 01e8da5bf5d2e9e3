-- the query
SELECT count(*) FROM `Order` AS `from` JOIN `Order` AS `b c` ON `from`.`größe` = `b c`.`größe` WHERE `from`.`a "b"` <= `b c`.`a "b"`;

-- the count
SELECT
  COUNT(*) AS `results`
FROM `order` AS `from`
JOIN `order` AS `b c`
  ON `from`.`größe` = `b c`.`größe`
WHERE
  NOT `b c`.`a "b"` IS NULL
  AND NOT `from`.`a "b"` IS NULL
  AND `from`.`a "b"` <= `b c`.`a "b"`;

-- {from} and {b c}, boundary from.größe
WITH `per_boundary_value` AS (
  SELECT
    COUNT(*) AS `results`
  FROM `order` AS `from`
  WHERE
    NOT `from`.`a "b"` IS NULL AND NOT `from`.`größe` IS NULL
  GROUP BY
    `from`.`größe`
)
SELECT
  COALESCE(MAX(`results`), 0)
FROM `per_boundary_value`;
