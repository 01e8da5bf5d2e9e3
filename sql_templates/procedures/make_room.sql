-- One function for each name: one that takes or returns something else goes. Who may call it is kept for the new one.
DO $sqlrs$
DECLARE
  older record;
BEGIN
  PERFORM set_config('sqlrs.callers', '[]', true);
  FOR older IN
    SELECT
      routine.oid::regprocedure AS called,
      (
        SELECT jsonb_agg(granted.grantee::regrole::text)
        FROM aclexplode(routine.proacl) AS granted
        WHERE granted.privilege_type = 'EXECUTE' AND granted.grantee NOT IN (0, routine.proowner)
      ) AS callers
    FROM pg_proc AS routine
    WHERE routine.pronamespace = 'sqlrs'::regnamespace
      AND routine.proname = {name}
      AND (routine.proargnames, routine.proallargtypes)
        IS DISTINCT FROM ({names}, {types}::regtype[]::oid[])
  LOOP
    PERFORM set_config('sqlrs.callers', coalesce(older.callers, '[]')::text, true);
    EXECUTE format('DROP FUNCTION %s', older.called);
  END LOOP;
END
$sqlrs$;
