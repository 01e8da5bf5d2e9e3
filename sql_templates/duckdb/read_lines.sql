-- The lines of a text file as they stand, after the first $skip ones; an empty line is NULL.
SELECT line
FROM read_csv(
  $path,
  auto_detect = false, header = false, skip = $skip, columns = {'line': 'VARCHAR'},
  delim = '', quote = '', escape = '', comment = '', strict_mode = false
);
