-- A Parquet file.
SELECT * FROM read_parquet($path);
