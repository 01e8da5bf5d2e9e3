-- The role that owns schema, tables and functions: nobody logs in as it, and it is no superuser.
-- Two installations at a time would trip over each other, so the first holds a lock to its end.
SELECT pg_catalog.pg_advisory_xact_lock(495756866163);

DO $sqlrs$
DECLARE
  owner CONSTANT name := {owner_text};
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = owner) THEN
    EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', owner);
  END IF;
  IF EXISTS (
    SELECT 1 FROM pg_catalog.pg_roles
    WHERE rolname = owner AND (rolsuper OR rolcanlogin OR rolreplication OR rolcreaterole)
  ) THEN
    RAISE EXCEPTION 'the owner of the procedures must be a role without login and without powers';
  END IF;
  -- Since PostgreSQL 16 who creates a role administers it, but does not act as it without this.
  IF NOT pg_catalog.pg_has_role(
    owner,
    CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END
  ) THEN
    EXECUTE pg_catalog.format('GRANT %I TO CURRENT_USER', owner);
  END IF;
END
$sqlrs$;
