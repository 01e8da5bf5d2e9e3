-- What the session says that the snapshots do not follow: settings under which a text of SQL means something else,
-- and temporary tables, which are found before all others.
SELECT 'setting', name
FROM (VALUES ('standard_conforming_strings', 'on'), ('transform_null_equals', 'off')) AS usual (name, value)
WHERE pg_catalog.current_setting(name) <> value
UNION ALL
SELECT 'temporary', relname::text
FROM pg_catalog.pg_class
WHERE relnamespace = pg_catalog.pg_my_temp_schema() AND relkind IN ('r', 'p', 'v', 'f')
