-- A TSV file: header and types are detected on all rows.
SELECT * FROM read_csv($path, delim = '\t', sample_size = -1);
