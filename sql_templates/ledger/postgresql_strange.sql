-- What makes the ledger's schema not the owner's alone: a part that belongs to a stranger, that a stranger may write
-- to, or that does something else than keep rows. No strangers are the role itself, what it is a member of, and
-- superusers.
WITH RECURSIVE own (oid) AS (
  SELECT role.oid FROM pg_catalog.pg_roles AS role WHERE role.rolname = current_user OR role.rolsuper
  UNION
  SELECT granted.roleid
  FROM own
  JOIN pg_catalog.pg_roles AS role ON role.oid = own.oid AND NOT role.rolsuper
  JOIN pg_catalog.pg_auth_members AS granted ON granted.member = own.oid
),
space AS (
  SELECT one.oid, one.nspowner, one.nspacl
  FROM pg_catalog.pg_namespace AS one
  WHERE one.nspname = 'sqlrs_ledger'
),
part AS (
  SELECT
    class.oid,
    class.relname,
    class.relkind,
    class.relowner,
    class.relacl,
    class.relpersistence,
    class.relrowsecurity
  FROM pg_catalog.pg_class AS class
  JOIN space ON space.oid = class.relnamespace
  WHERE class.relkind <> 'i'
)
SELECT 'it belongs to ' || space.nspowner::regrole
FROM space
WHERE space.nspowner NOT IN (SELECT oid FROM own)
UNION ALL
SELECT granted.grantee::regrole || ' may create objects in it'
FROM space
CROSS JOIN LATERAL pg_catalog.aclexplode(space.nspacl) AS granted
WHERE granted.privilege_type = 'CREATE' AND granted.grantee NOT IN (SELECT oid FROM own)
UNION ALL
SELECT part.relname || ' belongs to ' || part.relowner::regrole
FROM part
WHERE part.relowner NOT IN (SELECT oid FROM own)
UNION ALL
SELECT granted.grantee::regrole || ' may ' || granted.privilege_type || ' ' || part.relname
FROM part
CROSS JOIN LATERAL pg_catalog.aclexplode(part.relacl) AS granted
WHERE granted.privilege_type <> 'SELECT' AND granted.grantee NOT IN (SELECT oid FROM own)
UNION ALL
SELECT part.relname || ' is not a plain table, or has a trigger, a rule, a policy, a parent or a child'
FROM part
WHERE pg_catalog.starts_with(part.relname::text, 'sqlrs_')
  AND part.relkind <> 'S'
  AND (
    part.relkind <> 'r'
    OR part.relpersistence <> 'p'
    OR part.relrowsecurity
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite AS rule WHERE rule.ev_class = part.oid)
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_inherits WHERE part.oid IN (inhrelid, inhparent))
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_trigger AS one WHERE one.tgrelid = part.oid AND NOT one.tgisinternal)
  )
LIMIT 1
