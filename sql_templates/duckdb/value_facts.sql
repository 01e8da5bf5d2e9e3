-- CHECK constraints and foreign keys: what they say about the values of columns.
SELECT
  database_name,
  schema_name,
  table_name,
  constraint_type,
  expression,
  constraint_column_names,
  referenced_table,
  referenced_column_names
FROM duckdb_constraints()
WHERE constraint_type IN ('CHECK', 'FOREIGN KEY')
ORDER BY schema_name, table_name, constraint_index;
