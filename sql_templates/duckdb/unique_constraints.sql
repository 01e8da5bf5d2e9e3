-- The column sets that PRIMARY KEY and UNIQUE constraints keep unique; NULLs are looked at elsewhere.
SELECT database_name, schema_name, table_name, constraint_column_names
FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE');
