-- Whatever stands in the schema already must be the owner's alone: nobody else may own a part of it, add to it, write
-- to its tables, watch them by triggers, or call what only its own functions call.
DO $sqlrs$
DECLARE
  owner CONSTANT oid := (SELECT oid FROM pg_roles WHERE rolname = {owner_text});
  strange text;
BEGIN
  SELECT found.what INTO strange
  FROM (
    SELECT format('%s may create objects in it', granted.grantee::regrole) AS what
    FROM pg_namespace AS space
    CROSS JOIN LATERAL aclexplode(space.nspacl) AS granted
    WHERE space.nspname = 'sqlrs' AND granted.privilege_type = 'CREATE' AND granted.grantee IS DISTINCT FROM owner
    UNION ALL
    SELECT format('%s belongs to %s', class.relname, class.relowner::regrole)
    FROM pg_class AS class
    WHERE class.relnamespace = 'sqlrs'::regnamespace AND class.relkind <> 'i' AND class.relowner IS DISTINCT FROM owner
    UNION ALL
    SELECT format('%s belongs to %s', routine.proname, routine.proowner::regrole)
    FROM pg_proc AS routine
    WHERE routine.pronamespace = 'sqlrs'::regnamespace AND routine.proowner IS DISTINCT FROM owner
    UNION ALL
    SELECT format('%s may %s %s', granted.grantee::regrole, granted.privilege_type, class.relname)
    FROM pg_class AS class
    CROSS JOIN LATERAL aclexplode(class.relacl) AS granted
    WHERE class.relnamespace = 'sqlrs'::regnamespace
      AND granted.grantee IS DISTINCT FROM owner
      AND granted.privilege_type <> 'SELECT'
    UNION ALL
    SELECT format('%s may call %s', granted.grantee::regrole, routine.proname)
    FROM pg_proc AS routine
    CROSS JOIN LATERAL aclexplode(routine.proacl) AS granted
    WHERE routine.pronamespace = 'sqlrs'::regnamespace
      AND routine.proname = ANY ({inner_functions})
      AND granted.grantee IS DISTINCT FROM owner
    UNION ALL
    SELECT format('%s has a trigger, a rule, a policy, a parent or a child', class.relname)
    FROM pg_class AS class
    WHERE class.relnamespace = 'sqlrs'::regnamespace
      AND class.relkind IN ('r', 'p', 'f')
      AND (
        class.relkind <> 'r'
        OR class.relpersistence <> 'p'
        OR class.relrowsecurity
        OR EXISTS (SELECT 1 FROM pg_rewrite AS rule WHERE rule.ev_class = class.oid)
        OR EXISTS (SELECT 1 FROM pg_inherits WHERE class.oid IN (inhrelid, inhparent))
        OR EXISTS (
          SELECT 1 FROM pg_trigger AS one WHERE one.tgrelid = class.oid AND NOT one.tgisinternal
        )
      )
  ) AS found
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the schema sqlrs is not its owner''s alone: %', strange
    USING ERRCODE = '42501', HINT = 'take that away, or drop the schema and its budgets with it';
  END IF;
END
$sqlrs$;
