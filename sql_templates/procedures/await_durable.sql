-- Returns once the write-ahead log is on disk up to a place: a crash can no longer undo the charge before it.
-- Before PostgreSQL 17 a session cannot force that inside a transaction. The log's writer does it within moments
-- for whole pages, so enough is written to complete one.
CREATE OR REPLACE FUNCTION sqlrs.await_durable(place pg_lsn)
RETURNS void
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  patience CONSTANT interval := '60 seconds';
  since CONSTANT timestamptz := clock_timestamp();
BEGIN
  IF pg_current_wal_flush_lsn() >= place THEN
    RETURN;
  END IF;
  IF current_setting('server_version_num')::integer >= 170000 THEN
    PERFORM pg_logical_emit_message(false, 'sqlrs', '', true);
  ELSE
    PERFORM pg_logical_emit_message(
      false, 'sqlrs', repeat(' ', 2 * current_setting('wal_block_size')::integer)
    );
  END IF;
  LOOP
    EXIT WHEN pg_current_wal_flush_lsn() >= place;
    IF place IS NULL OR clock_timestamp() > since + patience THEN
      RAISE EXCEPTION 'the charge does not reach the disk';
    END IF;
    PERFORM pg_sleep(0.005);
  END LOOP;
END
$sqlrs$;
