SELECT pg_catalog.set_config('sqlrs.budget', $1, false)
