SELECT pg_catalog.current_setting('sqlrs.epsilon', true),
       pg_catalog.current_setting('sqlrs.error_bars', true),
       pg_catalog.current_setting('sqlrs.error', true),
       pg_catalog.current_setting('sqlrs.error_columns', true),
       (1000 * pg_catalog.date_part(
           'epoch', pg_catalog.current_setting('statement_timeout')::pg_catalog.interval
       ))::pg_catalog.int8
