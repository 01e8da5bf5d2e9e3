-- The columns that a B-tree index of all rows begins with, in the column's own order: rows can be read in it.
SELECT DISTINCT
  space.nspname,
  class.relname,
  attribute.attname::text
FROM pg_index AS index
JOIN pg_class AS class ON class.oid = index.indrelid
JOIN pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_class AS index_class ON index_class.oid = index.indexrelid
JOIN pg_am AS method ON method.oid = index_class.relam AND method.amname = 'btree'
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = index.indkey[0] AND index.indkey[0] > 0
JOIN pg_opclass AS operators ON operators.oid = index.indclass[0] AND operators.opcdefault
WHERE index.indisvalid
  AND index.indisready
  AND index.indpred IS NULL
  AND attribute.attcollation = index.indcollation[0]
