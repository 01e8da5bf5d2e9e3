-- Which transactions a snapshot takes for done. NULL where these do not decide the rows: in another session than the
-- one that was marked (its server may have lost transactions in a crash), on a standby (which does not list those that
-- run), and where a table lies elsewhere than in PostgreSQL's own storage: a foreign one, one with another access method
-- than heap (whose number is 2), one that Citus keeps on other servers. The time zone has a part in what a comparison means.
SELECT CASE
  WHEN current_setting('sqlrs.session', true) = %(session)s
    AND NOT pg_is_in_recovery()
    AND NOT EXISTS (SELECT FROM pg_class WHERE relkind = 'f' OR relkind IN ('r', 'm', 't') AND relam <> 2)
    AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')
  THEN concat_ws(' ', pg_current_snapshot()::text, current_setting('TimeZone'))
END
