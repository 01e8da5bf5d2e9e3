-- Where the session looks for unqualified names; and that path for the snapshots: pg_catalog first, then
-- the schemas of the columns' types, whose own equality would not be found otherwise.
WITH schemas AS (
  SELECT name, position
  FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, position)
  WHERE name <> 'pg_catalog'
), of_types AS (
  SELECT DISTINCT space.nspname AS name
  FROM pg_catalog.pg_attribute AS attribute
  JOIN pg_catalog.pg_class AS class ON class.oid = attribute.attrelid
  JOIN pg_catalog.pg_type AS type ON type.oid = attribute.atttypid
  JOIN pg_catalog.pg_namespace AS space ON space.oid = type.typnamespace
  WHERE attribute.attnum > 0
    AND class.relkind IN ('r', 'p', 'f', 'm', 'v')
    AND space.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    AND space.nspname NOT IN (SELECT name FROM schemas)
    AND has_schema_privilege(space.oid, 'USAGE')
)
SELECT
  coalesce((SELECT array_agg(name::text ORDER BY position) FROM schemas), '{}'),
  concat_ws(
    ', ',
    'pg_catalog',
    (SELECT string_agg(quote_ident(name), ', ' ORDER BY position) FROM schemas),
    (SELECT string_agg(quote_ident(name), ', ' ORDER BY name) FROM of_types)
  )
