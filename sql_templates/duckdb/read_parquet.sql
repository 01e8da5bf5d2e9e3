-- Parquet files; columns come from the names of folders only where a folder was given.
SELECT * FROM read_parquet($path, hive_partitioning = $hive);
