-- The other databases that everybody may connect to: each shows the counters of the whole server.
SELECT base.datname
FROM pg_catalog.pg_database AS base
CROSS JOIN LATERAL aclexplode(coalesce(base.datacl, acldefault('d', base.datdba))) AS granted
WHERE base.datallowconn
  AND base.datname <> current_database()
  AND granted.grantee = 0
  AND granted.privilege_type = 'CONNECT'
ORDER BY base.datname
