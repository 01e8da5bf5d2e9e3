-- Where some tables, and all that are children of any, are stored now: not as of the snapshot.
SELECT space.nspname, class.relname, coalesce(pg_relation_filenode(class.oid), 0)
FROM pg_class AS class JOIN pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.relkind IN ('r', 'm')
  AND (
    (space.nspname, class.relname) IN (SELECT * FROM unnest(%(schemas)s::name[], %(tables)s::name[]))
    OR EXISTS (SELECT FROM pg_inherits AS child WHERE child.inhrelid = class.oid)
  )
