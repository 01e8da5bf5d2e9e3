-- A name for this session that is lost with it, or with a reset of it.
SELECT pg_catalog.set_config('sqlrs.session', %(session)s, false)
