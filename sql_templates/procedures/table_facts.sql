-- What the catalog says of one table now, by the very statements that the compiler read it with: its columns, and the
-- sets of columns that are unique. A table that those statements leave out has neither.
CREATE OR REPLACE FUNCTION sqlrs.table_facts(table_schema text, table_name text)
RETURNS jsonb
LANGUAGE sql
STABLE
AS $sqlrs$
SELECT jsonb_build_object(
  'schema', table_schema,
  'name', table_name,
  'columns', (
    SELECT jsonb_object_agg(
      found.name,
      jsonb_build_object('type', found.type, 'collation', found.collation_name, 'nullable', found.nullable)
    )
    FROM (
{columns}
    ) AS found (schema, relation, oid, name, type, collation_name, deterministic, opaque, nullable)
    WHERE found.schema = table_schema AND found.relation = table_name
  ),
  'keys', (
    SELECT coalesce(
      jsonb_agg(
        jsonb_build_object(
          'size', cardinality(found.columns),
          'columns', (SELECT jsonb_object_agg(part, true) FROM unnest(found.columns) AS part)
        )
      ),
      '[]'
    )
    FROM (
{keys}
    ) AS found (schema, relation, columns)
    WHERE found.schema = table_schema AND found.relation = table_name
  )
)
$sqlrs$;
