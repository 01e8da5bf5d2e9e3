-- Refuses to serve a role that has, or can get, another way to the private rows: for it a private answer protects
-- nothing. What a role can get is all that it is a member of, however indirectly, whether or not it inherits or may
-- administer only: SET ROLE or one more GRANT is all it takes.
DO $sqlrs$
DECLARE
  asked CONSTANT text[] := {roles};
  owner CONSTANT text := {owner_text};
  schemas CONSTANT text[] := {schemas};
  tables CONSTANT text[] := {tables};
  unfit record;
BEGIN
  WITH RECURSIVE
  -- All that shows rows of a private table, or how many there are: partitions and children, views over any of these,
  -- and the sequences of their columns.
  shown (oid) AS (
    SELECT to_regclass(format('%I.%I', private.schema, private.name))::oid
    FROM unnest(schemas, tables) AS private (schema, name)
    UNION
    SELECT further.oid
    FROM shown
    CROSS JOIN LATERAL (
      SELECT child.inhrelid FROM pg_inherits AS child WHERE child.inhparent = shown.oid
      UNION ALL
      SELECT rule.ev_class
      FROM pg_depend AS needs
      JOIN pg_rewrite AS rule ON rule.oid = needs.objid
      WHERE needs.classid = 'pg_rewrite'::regclass
        AND needs.refclassid = 'pg_class'::regclass
        AND needs.refobjid = shown.oid
      UNION ALL
      SELECT counter.oid
      FROM pg_depend AS needs
      JOIN pg_class AS counter ON counter.oid = needs.objid AND counter.relkind = 'S'
      WHERE needs.classid = 'pg_class'::regclass
        AND needs.refclassid = 'pg_class'::regclass
        AND needs.refobjid = shown.oid
        AND needs.deptype IN ('a', 'i')
    ) AS further (oid)
  ),
  reached (role, oid) AS (
    SELECT known.rolname::text, known.oid
    FROM pg_roles AS known
    WHERE known.rolname = ANY (asked)
    UNION
    SELECT reached.role, granted.roleid
    FROM reached
    JOIN pg_auth_members AS granted ON granted.member = reached.oid
  ),
  powers (oid, reason) AS (
    SELECT
      known.oid,
      CASE
        WHEN known.rolsuper THEN 'is a superuser'
        WHEN known.rolname = owner THEN 'owns the functions'
        WHEN known.rolcreaterole THEN 'may create roles and make itself a member of others'
        WHEN known.rolreplication THEN 'may read the server''s log of all changes'
        ELSE 'has powers over the whole server'
      END
    FROM pg_roles AS known
    WHERE known.rolsuper
      OR known.rolname = owner
      OR known.rolcreaterole
      OR known.rolreplication
      OR known.rolname LIKE 'pg\_%'
    UNION ALL
    SELECT base.datdba, 'owns the database'
    FROM pg_database AS base
    WHERE base.datname = current_database()
    UNION ALL
    SELECT known.oid, 'may copy this database, a template, and its budgets with it'
    FROM pg_roles AS known
    JOIN pg_database AS base ON base.datname = current_database() AND base.datistemplate
    WHERE known.rolcreatedb
    UNION ALL
    SELECT space.nspowner, format('owns the schema %s of private rows', space.oid::regnamespace)
    FROM pg_namespace AS space
    JOIN pg_class AS class ON class.relnamespace = space.oid
    JOIN shown ON shown.oid = class.oid
    UNION ALL
    SELECT class.relowner, format('owns %s, which shows private rows', class.oid::regclass)
    FROM pg_class AS class
    JOIN shown ON shown.oid = class.oid
    UNION ALL
    SELECT
      granted.grantee,
      format('has the right %s on %s, which shows private rows', granted.privilege_type, class.oid::regclass)
    FROM pg_class AS class
    JOIN (
      SELECT shown.oid FROM shown
      -- The commonest values of each column; the views over them ask for rights on the table.
      UNION ALL
      VALUES ('pg_statistic'::regclass::oid), ('pg_statistic_ext_data'::regclass::oid)
    ) AS shows ON shows.oid = class.oid
    CROSS JOIN LATERAL (
      SELECT one.grantee, one.privilege_type FROM aclexplode(class.relacl) AS one
      UNION ALL
      SELECT one.grantee, one.privilege_type
      FROM pg_attribute AS attribute
      CROSS JOIN LATERAL aclexplode(attribute.attacl) AS one
      WHERE attribute.attrelid = class.oid
    ) AS granted
    UNION ALL
    -- What only superusers and pg_read_server_files can do unless somebody grants it.
    SELECT
      granted.grantee,
      format('has the right to call %s, which reads files of the server', routine.oid::regprocedure)
    FROM pg_proc AS routine
    CROSS JOIN LATERAL aclexplode(routine.proacl) AS granted
    WHERE routine.pronamespace = 'pg_catalog'::regnamespace
      AND routine.proname IN ('pg_read_file', 'pg_read_binary_file', 'lo_import')
  )
  SELECT found.role, found.reason INTO unfit
  FROM (
    SELECT missing.role, 'does not exist' AS reason
    FROM unnest(asked) AS missing (role)
    WHERE NOT EXISTS (SELECT 1 FROM pg_roles AS known WHERE known.rolname = missing.role)
    UNION ALL
    SELECT
      reached.role,
      CASE WHEN known.rolname = reached.role THEN '' ELSE format('can act as %s, which ', known.rolname) END
        || powers.reason
    FROM reached
    JOIN pg_roles AS known ON known.oid = reached.oid
    JOIN powers ON powers.oid = reached.oid
    UNION ALL
    -- Grants to PUBLIC, for everybody.
    SELECT asked_role, 'like everybody ' || powers.reason
    FROM unnest(asked) AS asked_role
    JOIN powers ON powers.oid = 0
    UNION ALL
    SELECT 'of the installer', 'cannot see a private table of the query'
    FROM shown
    WHERE shown.oid IS NULL
  ) AS found
  -- The greatest power first: "is a superuser", "owns …", then single rights.
  ORDER BY found.role, found.reason LIKE '%has the right%', found.reason
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'role % %', unfit.role, unfit.reason
    USING
      ERRCODE = 'RS001',
      HINT = 'grant the function to a role that has no other way to the private tables';
  END IF;
END
$sqlrs$;
