-- The columns that this role may read of every table and foreign table.
-- Each row must stand in one table only. Partitions and inheritance children are left out: their rows are rows
-- of the parent. So are parents that share a child, and materialised views, which copy rows of other tables.
-- A column may be null in spite of NOT NULL where that is not enforced: in foreign tables, partitions included, in
-- the children of a parent, and where the constraint is not validated (PostgreSQL 18).
-- Of a composite type neither IS NULL nor its negation tells a NULL from a value, and geometric types are equal by
-- their size or within a distance: no equality of values, so they are told apart.
-- A domain stands for its base type. Tables on which a row-level security policy acts are left out.
WITH RECURSIVE base_types (declared, base) AS (
  SELECT oid, CASE typtype WHEN 'd' THEN typbasetype ELSE oid END
  FROM pg_type
  UNION
  SELECT base_types.declared, domain.typbasetype
  FROM base_types
  JOIN pg_type AS domain ON domain.oid = base_types.base
  WHERE domain.typtype = 'd'
)
SELECT
  space.nspname,
  class.relname,
  class.oid,
  attribute.attname,
  format_type(type.oid, NULL),
  CASE WHEN collation_of.oid <> 'pg_catalog."default"'::regcollation
    THEN collation_of.oid::regcollation::text
  END,
  coalesce(collation_of.collisdeterministic, true),
  type.typcategory IN ('C', 'G'),
  NOT attribute.attnotnull
    OR class.relkind = 'f'
    OR EXISTS (
      SELECT 1 FROM pg_inherits AS child WHERE child.inhparent = class.oid AND class.relkind = 'r'
    )
    OR EXISTS (
      SELECT 1
      FROM pg_partition_tree(class.oid) AS part
      JOIN pg_class AS leaf ON leaf.oid = part.relid
      WHERE leaf.relkind = 'f'
    )
    OR EXISTS (
      SELECT 1 FROM pg_constraint AS not_null
      WHERE not_null.conrelid = class.oid
        AND not_null.contype = 'n'
        AND not_null.conkey = ARRAY[attribute.attnum]
        AND NOT not_null.convalidated
    ),
  attribute.attnum
FROM pg_class AS class
JOIN pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
JOIN base_types ON base_types.declared = attribute.atttypid
JOIN pg_type AS type ON type.oid = base_types.base AND type.typtype <> 'd'
LEFT JOIN pg_collation AS collation_of ON collation_of.oid = attribute.attcollation
WHERE class.relkind IN ('r', 'p', 'f')
  AND class.relpersistence <> 't'
  AND NOT EXISTS (SELECT 1 FROM pg_inherits AS parent WHERE parent.inhrelid = class.oid)
  AND NOT EXISTS (
    WITH RECURSIVE descendants (oid) AS (
      SELECT child.inhrelid FROM pg_inherits AS child WHERE child.inhparent = class.oid
      UNION
      SELECT child.inhrelid FROM pg_inherits AS child JOIN descendants ON child.inhparent = descendants.oid
    )
    SELECT 1
    FROM descendants
    JOIN pg_inherits AS parent ON parent.inhrelid = descendants.oid
    GROUP BY descendants.oid
    HAVING count(*) > 1
  )
  AND NOT row_security_active(class.oid)
  AND space.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  AND has_schema_privilege(space.oid, 'USAGE')
  AND attribute.attnum > 0
  AND NOT attribute.attisdropped
  AND has_column_privilege(class.oid, attribute.attnum, 'SELECT')
ORDER BY space.nspname, class.relname, attribute.attnum
