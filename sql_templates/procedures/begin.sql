-- All or nothing. Whoever holds a lock that is needed here is not waited for without end, and no name or operator is
-- looked up where others may have put one.
BEGIN;
SET LOCAL lock_timeout = '30s';
SET LOCAL search_path = pg_catalog;
