-- Whom each dataset protects.
SELECT dataset, unit FROM sqlrs.dataset_units;
