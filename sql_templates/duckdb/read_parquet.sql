-- A Parquet file; its columns are its own, none come from the names of folders.
SELECT * FROM read_parquet($path, hive_partitioning = false);
