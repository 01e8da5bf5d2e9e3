-- What one snapshot needs of its session; all of it ends with the transaction.
--   search_path                  functions and operators of pg_catalog come first
--   row_security                 a policy that would hide rows is an error, not a smaller count
--   standard_conforming_strings  a backslash in a string is a backslash
--   transform_null_equals        x = NULL is NULL
--   jit                          compiling costs more than it saves on these statements
--   enable_mergejoin             steps have no order and no statistics: what looks cheap to merge has to be sorted
--   enable_memoize               a cache of nested loops is taken to hit where it never does (PostgreSQL 14 on)
--   client_connection_check…     a statement ends when the program that asked for it was killed
--   work_mem                     room for steps that are read twice
--   hash_mem_multiplier          so many times that for each hash table of a join or of groups: two million of them
SELECT
  set_config('search_path', %(search_path)s, true),
  set_config('row_security', 'off', true),
  set_config('standard_conforming_strings', 'on', true),
  set_config('transform_null_equals', 'off', true),
  set_config('jit', 'off', true),
  set_config('enable_mergejoin', 'off', true),
  (SELECT set_config(name, 'off', true) FROM pg_catalog.pg_settings WHERE name = 'enable_memoize'),
  (
    SELECT set_config(name, '2s', true)
    FROM pg_catalog.pg_settings
    WHERE name = 'client_connection_check_interval'
  ),
  set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')) / 1024, 131072)::text, true),
  set_config('hash_mem_multiplier', greatest(current_setting('hash_mem_multiplier')::numeric, 4)::text, true),
  set_config('statement_timeout', coalesce(%(timeout)s, current_setting('statement_timeout')), true)
