-- The rows of a CSV or TSV file by its schema; nothing is detected, and a row that does not fit fails.
SELECT * FROM read_csv(
  $path,
  auto_detect = false, header = $header, skip = $skip, columns = $columns,
  delim = $delimiter, quote = $quote, escape = $quote, comment = '', hive_partitioning = $hive
);
