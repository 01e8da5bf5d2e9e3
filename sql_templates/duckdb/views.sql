-- The views, each as the statement that would create it.
SELECT database_name, schema_name, view_name, sql
FROM duckdb_views()
WHERE NOT internal AND NOT temporary
ORDER BY schema_name, view_name;
