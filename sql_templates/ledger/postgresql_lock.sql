-- Before a step to a newer version. The comment locks the schema until the transaction ends, and only its owner gets
-- that far: who else wants to make the step waits. Whoever works with the ledger has read its version and is waited
-- for; who comes later finds the new one. Readers who never end are not waited for without end.
DO $sqlrs$
BEGIN
  PERFORM set_config('lock_timeout', '30s', true);
  COMMENT ON SCHEMA sqlrs_ledger IS 'privacy budgets of sqlrs';
  IF to_regclass('sqlrs_ledger.sqlrs_version') IS NOT NULL THEN
    LOCK TABLE sqlrs_ledger.sqlrs_version IN ACCESS EXCLUSIVE MODE;
  END IF;
END
$sqlrs$
