-- The role that owns schema, tables and functions: nobody logs in as it, and it is no superuser.
DO $sqlrs$
DECLARE
  owner CONSTANT name := {owner_text};
BEGIN
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = owner) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', owner);
    END IF;
  EXCEPTION
    -- Another installation made it at the same time.
    WHEN duplicate_object OR unique_violation THEN
      NULL;
  END;
  IF EXISTS (
    SELECT 1 FROM pg_roles
    WHERE rolname = owner AND (rolsuper OR rolcanlogin OR rolreplication OR rolcreaterole)
  ) THEN
    RAISE EXCEPTION 'the owner of the procedures must be a role without login and without powers';
  END IF;
  -- Since PostgreSQL 16 who creates a role administers it, but does not act as it without this.
  IF NOT pg_has_role(
    owner,
    CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END
  ) THEN
    EXECUTE format('GRANT %I TO CURRENT_USER', owner);
  END IF;
END
$sqlrs$;
