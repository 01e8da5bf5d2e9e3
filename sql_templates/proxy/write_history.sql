SELECT pg_catalog.set_config('sqlrs.history', $1, false)
