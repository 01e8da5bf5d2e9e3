-- Every setting as this connection sees it.
SELECT name, value FROM duckdb_settings();
