-- Of the given roles those that do not exist, that act as the owner, or that may read a table of the query by
-- themselves: for them a private answer protects nothing.
SELECT
  asked.role,
  CASE
    WHEN known.oid IS NULL THEN 'does not exist'
    WHEN known.rolsuper THEN 'is a superuser'
    WHEN owner.oid IS NOT NULL AND pg_has_role(known.oid, owner.oid, 'MEMBER') THEN 'acts as the owner'
    ELSE 'may read a private table of the query by itself'
  END
FROM unnest(%(roles)s::text[]) AS asked (role)
LEFT JOIN pg_catalog.pg_roles AS known ON known.rolname = asked.role
LEFT JOIN pg_catalog.pg_roles AS owner ON owner.rolname = %(owner)s
WHERE known.oid IS NULL
  OR known.rolsuper
  OR (owner.oid IS NOT NULL AND pg_has_role(known.oid, owner.oid, 'MEMBER'))
  OR EXISTS (
    SELECT 1
    FROM unnest(%(schemas)s::text[], %(tables)s::text[]) AS private (schema, name)
    WHERE has_any_column_privilege(known.oid, format('%%I.%%I', private.schema, private.name), 'SELECT')
  )
ORDER BY asked.role;
