LANGUAGE plpgsql
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
-- No name is looked up where a caller may have put something, and no setting of a caller changes what the
-- statements mean or what the server tells about them.
SET search_path = pg_catalog, pg_temp
SET client_min_messages = error
SET row_security = off
SET standard_conforming_strings = on
SET transform_null_equals = off
SET gin_fuzzy_search_limit = 0
SET extra_float_digits = 1
SET jit = off
SET work_mem = '128MB'
SET DateStyle FROM CURRENT
SET IntervalStyle FROM CURRENT
SET TimeZone FROM CURRENT
