-- What every shadow database has besides the exposed tables. It never holds a row.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO PUBLIC;

CREATE ROLE analyst LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION;

CREATE SCHEMA sqlrs;
GRANT USAGE ON SCHEMA sqlrs TO PUBLIC;

-- All analysts share one role, so that none can find out the others' names. Whose session it is stands in a
-- setting that only the proxy gives. It writes the others before it lets a statement read them.
CREATE VIEW sqlrs.budget AS
SELECT current_setting('sqlrs.analyst') AS analyst,
       nullif(nullif(current_setting('sqlrs.budget', true), ''), 'unlimited')::numeric AS remaining,
       terms.cap, terms.spent, terms.lifetime, terms.renews, terms.expires
FROM json_to_record(coalesce(nullif(current_setting('sqlrs.budget_terms', true), ''), '{}')::json)
     AS terms(cap numeric, spent numeric, lifetime numeric, renews timestamptz, expires timestamptz);

CREATE VIEW sqlrs.history AS
SELECT entry."time", entry.sql, entry.epsilon, entry.status, entry.answer, entry.low, entry.high
FROM json_to_recordset(coalesce(nullif(current_setting('sqlrs.history', true), ''), '[]')::json)
     AS entry("time" timestamptz, sql text, epsilon numeric, status text, answer numeric, low numeric,
              high numeric);

GRANT SELECT ON sqlrs.budget, sqlrs.history TO PUBLIC;

-- Clients never need these; without them an analyst's session can reach nothing but the schema.
DO $$
DECLARE
    candidate record;
BEGIN
    FOR candidate IN
        SELECT p.oid::regprocedure AS signature
        FROM pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace
          AND (p.proname ~ '^(lo_|pg_read_|pg_ls_|pg_stat_get_|pg_advisory_lock|pg_try_advisory|pg_sleep|pg_cancel|pg_terminate|pg_logical|pg_replication|pg_export_snapshot|query_to_|table_to_|schema_to_|cursor_to_|database_to_|ts_stat|dblink)'
               OR p.proname IN ('pg_notify', 'pg_reload_conf', 'pg_rotate_logfile', 'loread', 'lowrite'))
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', candidate.signature);
    END LOOP;
END
$$;

REVOKE ALL ON pg_catalog.pg_stats, pg_catalog.pg_stat_activity, pg_catalog.pg_locks FROM PUBLIC;
