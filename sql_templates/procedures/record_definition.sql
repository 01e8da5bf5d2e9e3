-- What is installed, for the owner to look up.
INSERT INTO sqlrs.queries (name, dataset, sql, shape, least_epsilon, repeats, installed_at, edition)
VALUES ({name}, {dataset}, {sql}, {shape}, {least_epsilon}, {repeats}, pg_catalog.now(), {edition})
ON CONFLICT (name) DO UPDATE SET
  dataset = excluded.dataset,
  sql = excluded.sql,
  shape = excluded.shape,
  least_epsilon = excluded.least_epsilon,
  repeats = excluded.repeats,
  installed_at = excluded.installed_at,
  edition = excluded.edition;
