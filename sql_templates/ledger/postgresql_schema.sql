-- The ledger's own schema, made on first use. Who comes second waits for the first one's transaction.
DO $sqlrs$
BEGIN
  IF to_regnamespace('sqlrs_ledger') IS NULL THEN
    CREATE SCHEMA sqlrs_ledger;
  END IF;
EXCEPTION
  WHEN duplicate_schema OR unique_violation THEN
    NULL;
END
$sqlrs$
