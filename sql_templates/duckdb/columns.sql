-- The columns of every table, with the statement that would create the table: collations stand only there.
SELECT
  tables.database_name,
  tables.schema_name,
  tables.table_name,
  tables.table_oid,
  tables.sql,
  columns.column_name,
  columns.data_type,
  columns.is_nullable
FROM duckdb_tables() AS tables
JOIN duckdb_columns() AS columns
  USING (database_oid, schema_oid, table_oid)
WHERE NOT tables.internal AND NOT tables.temporary
ORDER BY tables.schema_name, tables.table_name, columns.column_index;
