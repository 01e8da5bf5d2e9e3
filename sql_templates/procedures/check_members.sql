-- Refuses an owner that somebody else can act as: who made the role beforehand, or is a member of it for another
-- reason, would read the private rows and write the budgets. The installer may, and who owns the tables anyway.
DO $sqlrs$
DECLARE
  owner CONSTANT text := {owner_text};
  schemas CONSTANT text[] := {schemas};
  tables CONSTANT text[] := {tables};
  other text;
BEGIN
  WITH RECURSIVE
  acting (oid) AS (
    SELECT granted.member
    FROM pg_auth_members AS granted
    JOIN pg_roles AS known ON known.oid = granted.roleid
    WHERE known.rolname = owner
    UNION
    SELECT granted.member
    FROM acting
    JOIN pg_auth_members AS granted ON granted.roleid = acting.oid
  )
  SELECT known.rolname INTO other
  FROM acting
  JOIN pg_roles AS known ON known.oid = acting.oid
  WHERE NOT known.rolsuper
    AND known.rolname <> ALL (ARRAY[current_user, session_user])
    AND EXISTS (
      SELECT 1
      FROM unnest(schemas, tables) AS private (schema, name)
      LEFT JOIN pg_class AS class ON class.oid = to_regclass(format('%I.%I', private.schema, private.name))
      WHERE class.relowner IS DISTINCT FROM known.oid
    )
  ORDER BY known.rolname
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'role % can act as %, which owns the functions and reads the private tables', other, owner
    USING
      ERRCODE = 'RS001',
      HINT = format('take the members of %I away from it (REVOKE), or give another owner', owner);
  END IF;
END
$sqlrs$;
