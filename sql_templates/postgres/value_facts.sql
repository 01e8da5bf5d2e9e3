-- What the schema says about the values of columns: the labels of enumerations, CHECK constraints of tables and of
-- domain types, foreign keys of one column.
-- A constraint counts where it was validated and every row that the table shows obeys it: nothing is enforced in
-- foreign tables, partitions included, nor in children that do not inherit it.
WITH RECURSIVE below (top, oid) AS (
  SELECT inhparent, inhrelid FROM pg_inherits
  UNION
  SELECT below.top, child.inhrelid FROM below JOIN pg_inherits AS child ON child.inhparent = below.oid
), enforced AS (
  SELECT
    class.oid,
    class.relname,
    space.nspname,
    class.relkind = 'p' OR NOT EXISTS (SELECT 1 FROM below WHERE below.top = class.oid) AS all_rows
  FROM pg_class AS class
  JOIN pg_namespace AS space ON space.oid = class.relnamespace
  WHERE class.relkind IN ('r', 'p')
    AND class.relpersistence <> 't'
    AND space.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    AND NOT EXISTS (
      SELECT 1
      FROM below
      JOIN pg_class AS part ON part.oid = below.oid
      WHERE below.top = class.oid AND part.relkind = 'f'
    )
), types (declared, inside) AS (
  SELECT oid, oid FROM pg_type WHERE typtype = 'd'
  UNION
  SELECT types.declared, domain.typbasetype
  FROM types
  JOIN pg_type AS domain ON domain.oid = types.inside
  WHERE domain.typtype = 'd'
)
SELECT
  'enum' AS kind,
  format_type(type.oid, NULL) AS type_name,
  type.typname::text AS short_name,
  NULL AS schema_name,
  NULL AS table_name,
  NULL AS column_name,
  NULL AS text,
  array_agg(label.enumlabel::text ORDER BY label.enumsortorder) AS labels
FROM pg_type AS type
JOIN pg_enum AS label ON label.enumtypid = type.oid
GROUP BY type.oid, type.typname
UNION ALL
SELECT
  'check', NULL, NULL, enforced.nspname, enforced.relname, NULL, pg_get_expr(known.conbin, known.conrelid), NULL
FROM pg_constraint AS known
JOIN enforced ON enforced.oid = known.conrelid
WHERE known.contype = 'c'
  AND known.convalidated
  AND NOT EXISTS (
    SELECT 1
    FROM below
    WHERE below.top = enforced.oid
      AND NOT EXISTS (
        SELECT 1
        FROM pg_constraint AS inherited
        WHERE inherited.conrelid = below.oid
          AND inherited.contype = 'c'
          AND inherited.conname = known.conname
          AND inherited.coninhcount > 0
          AND inherited.convalidated
      )
  )
UNION ALL
SELECT
  'type',
  NULL,
  domain.typname,
  enforced.nspname,
  enforced.relname,
  attribute.attname,
  pg_get_expr(known.conbin, 0),
  NULL
FROM pg_attribute AS attribute
JOIN enforced ON enforced.oid = attribute.attrelid
JOIN types ON types.declared = attribute.atttypid
JOIN pg_type AS domain ON domain.oid = types.inside
JOIN pg_constraint AS known ON known.contypid = types.inside
WHERE known.contype = 'c'
  AND known.convalidated
  AND NOT attribute.attisdropped
UNION ALL
SELECT
  'foreign key',
  NULL,
  NULL,
  enforced.nspname,
  enforced.relname,
  attribute.attname,
  NULL,
  ARRAY[parent_space.nspname::text, parent.relname::text, referred.attname::text]
FROM pg_constraint AS known
JOIN enforced ON enforced.oid = known.conrelid AND enforced.all_rows
JOIN pg_attribute AS attribute ON attribute.attrelid = known.conrelid AND ARRAY[attribute.attnum] = known.conkey
JOIN pg_class AS parent ON parent.oid = known.confrelid
JOIN pg_namespace AS parent_space ON parent_space.oid = parent.relnamespace
JOIN pg_attribute AS referred ON referred.attrelid = known.confrelid AND ARRAY[referred.attnum] = known.confkey
JOIN pg_operator AS equals ON equals.oid = known.conpfeqop[1] AND equals.oprname = '='
WHERE known.contype = 'f'
  AND known.convalidated
ORDER BY kind, schema_name, table_name, column_name, text, labels
