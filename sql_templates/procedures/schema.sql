-- The schema of the procedures. One that somebody else made, perhaps with objects in it, is refused.
-- Two installations at a time would trip over each other: the comment locks the schema until the transaction ends, and
-- only its owner gets that far.
DO $sqlrs$
DECLARE
  owner CONSTANT name := {owner_text};
  before CONSTANT text := current_setting('role');
BEGIN
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'sqlrs') THEN
      EXECUTE format('CREATE SCHEMA sqlrs AUTHORIZATION %I', owner);
    END IF;
  EXCEPTION
    WHEN duplicate_schema OR unique_violation THEN
      NULL;
  END;
  IF NOT EXISTS (
    SELECT 1 FROM pg_namespace JOIN pg_roles ON pg_roles.oid = nspowner WHERE nspname = 'sqlrs' AND rolname = owner
  ) THEN
    RAISE EXCEPTION 'the schema sqlrs belongs to another role';
  END IF;
  PERFORM set_config('role', owner, true);
  COMMENT ON SCHEMA sqlrs IS 'private counts as functions, and their budgets';
  PERFORM set_config('role', before, true);
END
$sqlrs$;
