-- What the server says of the functions with these names, built-in ones included. Temporary ones are called only by
-- their schema's name.
SELECT
  routine.proname::text,
  routine.prokind = 'f' AND NOT routine.proretset,
  routine.provolatile = 'i',
  routine.pronargdefaults > 0 OR routine.provariadic <> 0,
  routine.pronargs::integer,
  routine.oid::text || ' ' || CASE WHEN routine.prokind <> 'a' THEN pg_catalog.pg_get_functiondef(routine.oid) ELSE '' END
FROM pg_catalog.pg_proc AS routine
WHERE routine.proname = ANY (%(names)s)
  AND routine.pronamespace <> pg_catalog.pg_my_temp_schema()
  AND NOT pg_catalog.pg_is_other_temp_schema(routine.pronamespace)
ORDER BY routine.oid
