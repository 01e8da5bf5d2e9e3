-- What DuckDB takes a CSV file for, by all of its rows; quotes are always the double ones.
SELECT "Delimiter", "HasHeader", "Columns", "DateFormat", "TimestampFormat"
FROM sniff_csv($path, sample_size = -1, quote = '"', escape = '"', comment = '', skip = $skip);
