-- What DuckDB takes the rows of a JSON file for, by all of them.
SELECT * FROM read_json(
  $path,
  format = $format, sample_size = -1, dateformat = '%Y-%m-%d', map_inference_threshold = -1, hive_partitioning = false
);
