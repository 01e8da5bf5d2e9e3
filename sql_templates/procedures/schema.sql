-- The schema of the procedures. One that somebody else made, perhaps with objects in it, is refused.
DO $sqlrs$
DECLARE
  owner CONSTANT name := {owner_text};
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'sqlrs') THEN
    EXECUTE pg_catalog.format('CREATE SCHEMA sqlrs AUTHORIZATION %I', owner);
  ELSIF (
    SELECT nspowner <> owner::regrole::oid FROM pg_catalog.pg_namespace WHERE nspname = 'sqlrs'
  ) THEN
    RAISE EXCEPTION 'the schema sqlrs belongs to another role';
  END IF;
END
$sqlrs$;
