-- Functions and operators outside pg_catalog that take built-in types alone: where the types fit better, they are
-- called in the place of built-in ones. Extensions bring theirs for their own types.
SELECT 'function', routine.proname
FROM pg_proc AS routine
WHERE routine.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
  AND NOT EXISTS (
    SELECT 1 FROM unnest(routine.proargtypes::oid[]) AS argument
    JOIN pg_type AS type ON type.oid = argument
    WHERE type.typnamespace <> 'pg_catalog'::regnamespace
  )
  AND NOT EXISTS (
    SELECT 1 FROM pg_depend AS member
    WHERE member.classid = 'pg_proc'::regclass AND member.objid = routine.oid AND member.deptype = 'e'
  )
UNION
SELECT 'operator', operator.oprname
FROM pg_operator AS operator
WHERE operator.oprnamespace <> 'pg_catalog'::regnamespace
  AND NOT EXISTS (
    SELECT 1 FROM pg_type AS type
    WHERE type.oid IN (operator.oprleft, operator.oprright) AND type.typnamespace <> 'pg_catalog'::regnamespace
  )
  AND NOT EXISTS (
    SELECT 1 FROM pg_depend AS member
    WHERE member.classid = 'pg_operator'::regclass AND member.objid = operator.oid AND member.deptype = 'e'
  )
