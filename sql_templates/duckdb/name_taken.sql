-- Whether a table or view has this name: a temporary table of the same name would hide it.
SELECT EXISTS (
  SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower($name)
  UNION ALL
  SELECT 1 FROM duckdb_views() WHERE lower(view_name) = lower($name)
);
