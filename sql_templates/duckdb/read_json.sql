-- The rows of a JSON file by its schema, keys that the schema does not name left out; nothing is detected.
SELECT * FROM read_json(
  $path,
  format = $format, auto_detect = false, columns = $columns, hive_partitioning = $hive
);
