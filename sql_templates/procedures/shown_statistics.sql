-- What PostgreSQL tells everybody about the rows of tables without reading them, as the rights to take away: counters of
-- activity, locks on what was read, sizes, and the estimated numbers of rows.
SELECT format('SELECT ON %s', class.oid::regclass) AS permission
FROM pg_catalog.pg_class AS class
CROSS JOIN LATERAL aclexplode(coalesce(class.relacl, acldefault('r', class.relowner))) AS granted
WHERE granted.grantee = 0
  AND granted.privilege_type = 'SELECT'
  AND class.relname ~ '^pg_(stat_|statio_|stats|locks$)'
UNION ALL
SELECT format('EXECUTE ON FUNCTION %s', routine.oid::regprocedure)
FROM pg_catalog.pg_proc AS routine
CROSS JOIN LATERAL aclexplode(coalesce(routine.proacl, acldefault('f', routine.proowner))) AS granted
WHERE granted.grantee = 0
  AND routine.proname ~ '^pg_(stat_.*|lock_status|(relation|table|indexes|total_relation|database|tablespace)_size)$'
UNION ALL
SELECT 'SELECT ON pg_catalog.pg_class'
FROM pg_catalog.pg_class AS class
CROSS JOIN LATERAL aclexplode(class.relacl) AS granted
WHERE class.oid = 'pg_catalog.pg_class'::regclass AND granted.grantee = 0 AND granted.privilege_type = 'SELECT'
ORDER BY permission
