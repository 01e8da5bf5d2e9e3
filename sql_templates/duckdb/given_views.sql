-- The views of the current database and of this connection alone, each as the statement that would create it.
SELECT schema_name, view_name, temporary, sql
FROM duckdb_views()
WHERE NOT internal AND (temporary OR database_name = current_database())
ORDER BY schema_name, view_name;
