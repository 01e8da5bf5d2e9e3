-- One row that changes with every change of the schema that the catalog of sqlrs is read from: each row of a
-- system catalog carries the transaction that wrote it. Statistics are written in place and do not count.
-- Functions and operators below 16384 are the server's own.
WITH relations AS (
  SELECT class.oid, class.xmin::text AS written
  FROM pg_catalog.pg_class AS class
  WHERE class.relkind IN ('r', 'p', 'f', 'v', 'm')
    AND class.relpersistence <> 't'
    AND class.relnamespace NOT IN (
      SELECT oid FROM pg_catalog.pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema', 'pg_toast')
    )
), facts (kind, owner, part, written) AS (
  SELECT 1, oid, 0, written FROM relations
  UNION ALL
  SELECT 2, attribute.attrelid, attribute.attnum, attribute.xmin::text
  FROM pg_catalog.pg_attribute AS attribute JOIN relations ON relations.oid = attribute.attrelid
  UNION ALL
  SELECT 3, index.indexrelid, index.indrelid::bigint, index.xmin::text
  FROM pg_catalog.pg_index AS index JOIN relations ON relations.oid = index.indrelid
  UNION ALL
  SELECT 4, known.oid, 0, known.xmin::text
  FROM pg_catalog.pg_constraint AS known JOIN relations ON relations.oid = known.conrelid
  UNION ALL
  SELECT 5, child.inhrelid, child.inhparent::bigint, child.xmin::text
  FROM pg_catalog.pg_inherits AS child JOIN relations ON relations.oid = child.inhparent
  UNION ALL
  SELECT 6, rule.oid, 0, rule.xmin::text
  FROM pg_catalog.pg_rewrite AS rule JOIN relations ON relations.oid = rule.ev_class
  UNION ALL
  SELECT 7, space.oid, 0, space.xmin::text
  FROM pg_catalog.pg_namespace AS space
  WHERE space.nspname !~ '^pg_(toast_)?temp_'
  UNION ALL
  SELECT 8, type.oid, 0, type.xmin::text
  FROM pg_catalog.pg_type AS type
  WHERE type.typtype IN ('d', 'e')
  UNION ALL
  SELECT 9, routine.oid, 0, routine.xmin::text
  FROM pg_catalog.pg_proc AS routine
  WHERE routine.oid >= 16384
  UNION ALL
  SELECT 10, operator.oid, 0, operator.xmin::text
  FROM pg_catalog.pg_operator AS operator
  WHERE operator.oid >= 16384
  UNION ALL
  SELECT 11, label.oid, 0, label.xmin::text
  FROM pg_catalog.pg_enum AS label
  UNION ALL
  SELECT 12, known.oid, 0, known.xmin::text
  FROM pg_catalog.pg_constraint AS known
  WHERE known.contypid <> 0
)
SELECT
  pg_catalog.count(*),
  pg_catalog.sum(pg_catalog.hashtextextended(pg_catalog.concat_ws(',', kind, owner, part, written), 0))::text,
  current_user::text
FROM facts
