-- Where the tables that have some names now, and all that are children of any, are stored now: not as of the snapshot.
SELECT named.schema, named.name, coalesce(pg_relation_filenode(to_regclass(format('%%I.%%I', named.schema, named.name))), 0)
FROM unnest(%(schemas)s::text[], %(tables)s::text[]) AS named (schema, name)
UNION ALL
SELECT '', child.inhrelid::text, coalesce(pg_relation_filenode(child.inhrelid), 0)
FROM pg_inherits AS child
