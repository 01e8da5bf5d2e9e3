-- Settings are those of the session that installs: of the planner, because a caller who chooses the plan chooses which
-- of the server's counters and buffers tell about the data; and of formats, because they change what a cast means.
DO $sqlrs$
DECLARE
  setting record;
BEGIN
  FOR setting IN
    SELECT name, current_setting(name) AS value
    FROM pg_settings
    WHERE context = 'user'
      AND (
        category LIKE 'Query Tuning%'
        OR category LIKE 'Version and Platform Compatibility%'
        OR category LIKE '%Locale and Formatting'
        OR name IN (
          'bytea_output', 'xmlbinary', 'xmloption',
          -- The planner asks these too, though they are listed among resources and developers' options.
          'hash_mem_multiplier', 'effective_io_concurrency', 'max_parallel_workers', 'max_parallel_workers_per_gather',
          'parallel_leader_participation', 'force_parallel_mode', 'debug_parallel_query'
        )
      )
      -- The encoding is between server and client; the others are fixed where the function is created.
      AND name NOT IN (
        'client_encoding', 'jit', 'extra_float_digits', 'standard_conforming_strings', 'transform_null_equals'
      )
  LOOP
    EXECUTE format('ALTER FUNCTION sqlrs.%I SET %I = %L', {name}, setting.name, setting.value);
  END LOOP;
END
$sqlrs$;
