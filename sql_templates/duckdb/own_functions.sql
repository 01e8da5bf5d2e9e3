-- The macros of the database: one with the name of a built-in function is called in its place. Nothing is called here,
-- and the list is the engine's own.
SELECT DISTINCT function_name FROM system.main.duckdb_functions() WHERE NOT internal;
