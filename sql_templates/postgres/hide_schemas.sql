-- With only pg_catalog in sight, types and the tables of views are written with their schemas.
SET LOCAL search_path = pg_catalog
