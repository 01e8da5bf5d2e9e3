SELECT pg_catalog.set_config('sqlrs.budget', $1, false),
       pg_catalog.set_config('sqlrs.budget_terms', $2, false)
