-- One row where datasets have units, none before version 5.
SELECT 1 WHERE to_regclass('sqlrs.dataset_units') IS NOT NULL;
