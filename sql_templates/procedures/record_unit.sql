-- A dataset protects one unit: what is spent of its budget is one promise only if all functions make the same.
INSERT INTO sqlrs.dataset_units (dataset, unit) VALUES ({dataset}, {unit}) ON CONFLICT DO NOTHING;
DO $sqlrs$
BEGIN
  IF (SELECT one.unit FROM sqlrs.dataset_units AS one WHERE one.dataset = {dataset}) IS DISTINCT FROM {unit} THEN
    RAISE EXCEPTION 'the budget of dataset % protects another unit than this function would', {dataset}
    USING ERRCODE = 'RS002', HINT = 'name another dataset for it, with a budget of its own: --dataset NAME';
  END IF;
END
$sqlrs$;
