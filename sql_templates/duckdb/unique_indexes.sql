-- Unique indexes as the statements that would create them: their columns stand only there.
SELECT database_name, schema_name, table_name, sql
FROM duckdb_indexes()
WHERE is_unique AND NOT is_primary AND sql IS NOT NULL;
