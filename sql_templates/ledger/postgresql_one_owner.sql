-- After a step: what it made belongs to whom the budgets belong. Else a ledger that one of several members of its
-- role has upgraded would be closed to the others.
DO $sqlrs$
DECLARE
  owner CONSTANT oid := (
    SELECT class.relowner FROM pg_catalog.pg_class AS class WHERE class.oid = 'sqlrs_ledger.sqlrs_budgets'::regclass
  );
  made regclass;
BEGIN
  FOR made IN
    SELECT class.oid
    FROM pg_catalog.pg_class AS class
    WHERE class.relnamespace = 'sqlrs_ledger'::regnamespace
      AND class.relkind = 'r'
      AND pg_catalog.starts_with(class.relname::text, 'sqlrs_')
      AND class.relowner <> owner
      AND class.relowner = current_user::regrole
      AND pg_catalog.pg_has_role(owner, 'MEMBER')
  LOOP
    EXECUTE 'ALTER TABLE ' || made || ' OWNER TO ' || owner::regrole;
  END LOOP;
END
$sqlrs$
