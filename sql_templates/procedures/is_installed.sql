-- Whether the schema of the procedures exists and holds the table of installed queries.
SELECT pg_catalog.to_regclass('sqlrs.queries') IS NOT NULL;
