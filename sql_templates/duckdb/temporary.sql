-- The temporary tables and views of this connection, which no duplicate of it sees.
SELECT table_name FROM duckdb_tables() WHERE temporary
UNION
SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal;
