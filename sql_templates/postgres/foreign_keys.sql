-- Foreign keys, each as a whole: the columns of a table, in the order of the key that they hold, and that key.
-- One counts whether or not it is validated: it says what the columns mean, not that every row obeys it.
-- Those that PostgreSQL makes for partitions are left out, and those that compare periods, which overlap.
SELECT
  space.nspname,
  class.relname,
  (
    SELECT array_agg(attribute.attname::text ORDER BY part.place)
    FROM unnest(known.conkey) WITH ORDINALITY AS part (attnum, place)
    JOIN pg_attribute AS attribute ON attribute.attrelid = known.conrelid AND attribute.attnum = part.attnum
  ),
  parent_space.nspname,
  parent.relname,
  (
    SELECT array_agg(attribute.attname::text ORDER BY part.place)
    FROM unnest(known.confkey) WITH ORDINALITY AS part (attnum, place)
    JOIN pg_attribute AS attribute ON attribute.attrelid = known.confrelid AND attribute.attnum = part.attnum
  )
FROM pg_constraint AS known
JOIN pg_class AS class ON class.oid = known.conrelid
JOIN pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_class AS parent ON parent.oid = known.confrelid
JOIN pg_namespace AS parent_space ON parent_space.oid = parent.relnamespace
WHERE known.contype = 'f'
  AND known.conparentid = 0
  AND class.relpersistence <> 't'
  AND NOT EXISTS (
    SELECT 1
    FROM unnest(known.conpfeqop) AS compared (oid)
    JOIN pg_operator AS operator ON operator.oid = compared.oid
    WHERE operator.oprname <> '='
  )
ORDER BY space.nspname, class.relname, known.conname
