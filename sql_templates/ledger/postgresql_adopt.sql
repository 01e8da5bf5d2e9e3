-- Before the tables are made: the comment locks the schema until the transaction ends, and only its owner gets that
-- far. A ledger of an older version, found on the search path, moves in with all that is spent.
DO $sqlrs$
BEGIN
  IF to_regclass('sqlrs_ledger.sqlrs_budgets') IS NULL OR to_regclass('sqlrs_ledger.sqlrs_releases') IS NULL THEN
    COMMENT ON SCHEMA sqlrs_ledger IS 'privacy budgets of sqlrs';
    IF to_regclass('sqlrs_ledger.sqlrs_budgets') IS NULL AND to_regclass('sqlrs_budgets') IS NOT NULL THEN
      ALTER TABLE sqlrs_budgets SET SCHEMA sqlrs_ledger;
      ALTER TABLE sqlrs_releases SET SCHEMA sqlrs_ledger;
    END IF;
  END IF;
END
$sqlrs$
