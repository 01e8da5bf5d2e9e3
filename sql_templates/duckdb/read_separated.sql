-- A CSV file: separator, header and types are detected on all rows.
SELECT * FROM read_csv($path, sample_size = -1);
