-- One row that changes with every change of the schema that the catalog of sqlrs is read from.
SELECT
  (SELECT coalesce(sum(hash(database_name, schema_name, table_name, table_oid, sql)), 0) FROM duckdb_tables() WHERE NOT internal),
  (SELECT coalesce(sum(hash(database_name, schema_name, view_name, view_oid, sql)), 0) FROM duckdb_views() WHERE NOT internal),
  (SELECT coalesce(sum(hash(database_name, schema_name, index_name, index_oid, table_oid, sql)), 0) FROM duckdb_indexes()),
  (SELECT list(database_name ORDER BY database_name) FROM duckdb_databases() WHERE NOT internal),
  (SELECT list(function_name ORDER BY function_name) FROM system.main.duckdb_functions() WHERE NOT internal),
  current_setting('default_collation');
