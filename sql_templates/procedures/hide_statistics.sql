-- Takes PostgreSQL's statistics away from everybody but superusers and members of pg_monitor, in this database. With
-- them a caller of a private count could read off the server what the count does not tell. For superusers.
BEGIN;
SET LOCAL lock_timeout = '30s';
SET LOCAL search_path = pg_catalog;

DO $sqlrs$
DECLARE
  shown record;
BEGIN
  FOR shown IN
{shown}
  LOOP
    EXECUTE format('GRANT %s TO pg_monitor', shown.permission);
    EXECUTE format('REVOKE %s FROM PUBLIC', shown.permission);
  END LOOP;
  -- Clients need the names and kinds of tables; the numbers of rows and pages they do not.
  EXECUTE (
    SELECT format('GRANT SELECT (%s) ON pg_class TO PUBLIC', string_agg(quote_ident(attname), ', ' ORDER BY attnum))
    FROM pg_attribute
    WHERE attrelid = 'pg_class'::regclass
      AND NOT attisdropped
      AND attname NOT IN ('reltuples', 'relpages', 'relallvisible', 'relallfrozen')
  );
  -- A REVOKE without the right to it is only a warning.
  IF EXISTS (
{shown}
  ) THEN
    RAISE EXCEPTION 'not all statistics could be hidden' USING ERRCODE = '42501', HINT = 'run it as a superuser';
  END IF;
END
$sqlrs$;

COMMIT;
