-- The views that this role may read, with their queries.
SELECT space.nspname, class.relname, pg_get_viewdef(class.oid)
FROM pg_class AS class
JOIN pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.relkind = 'v'
  AND class.relpersistence <> 't'
  AND space.nspname NOT IN ('pg_catalog', 'information_schema')
  AND has_schema_privilege(space.oid, 'USAGE')
  AND has_any_column_privilege(class.oid, 'SELECT')
ORDER BY space.nspname, class.relname
