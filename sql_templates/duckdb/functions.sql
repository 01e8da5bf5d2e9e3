-- What the engine says of functions, its own and the database's. Nothing is called here, and the list is the engine's own.
SELECT
  function_name,
  function_type,
  internal,
  stability,
  parameters,
  macro_definition,
  [database_name, schema_name, return_type, varargs, CAST(function_oid AS VARCHAR), CAST(parameter_types AS VARCHAR)]
FROM system.main.duckdb_functions()
