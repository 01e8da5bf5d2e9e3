-- The names of the attached databases, which a schema's name must not repeat.
SELECT database_name FROM duckdb_databases() WHERE NOT internal;
