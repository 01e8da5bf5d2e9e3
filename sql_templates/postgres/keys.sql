-- The column sets that an index keeps unique by the equality that joins use: valid, not deferrable, neither
-- partial nor over expressions, B-tree with the types' own operators and the columns' own collations.
-- Which columns are never null is told elsewhere; none is where a parent has inheritance children.
SELECT
  space.nspname,
  class.relname,
  array_agg(attribute.attname::text)
FROM pg_index AS index
JOIN pg_class AS class ON class.oid = index.indrelid
JOIN pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_class AS index_class ON index_class.oid = index.indexrelid
JOIN pg_am AS method ON method.oid = index_class.relam AND method.amname = 'btree'
CROSS JOIN LATERAL unnest(
  (index.indkey::int2[])[0:index.indnkeyatts - 1],
  (index.indcollation::oid[])[0:index.indnkeyatts - 1],
  (index.indclass::oid[])[0:index.indnkeyatts - 1]
) AS part (attnum, collation_oid, class_oid)
LEFT JOIN pg_attribute AS attribute
  ON attribute.attrelid = class.oid AND attribute.attnum = part.attnum AND part.attnum > 0
LEFT JOIN pg_opclass AS operators ON operators.oid = part.class_oid
WHERE index.indisunique
  AND index.indisvalid
  AND index.indisready
  AND index.indimmediate
  AND NOT index.indisexclusion
  AND index.indpred IS NULL
  AND index.indexprs IS NULL
GROUP BY space.nspname, class.relname, index.indexrelid
HAVING bool_and(
  coalesce(attribute.attcollation = part.collation_oid AND operators.opcdefault, false)
)
