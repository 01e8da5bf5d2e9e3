-- The first line of a text file after $skip lines. What comes after it must not matter, so nothing there is an error.
SELECT line
FROM read_csv(
  $path,
  auto_detect = false, header = false, skip = $skip, columns = {'line': 'VARCHAR'},
  delim = '', quote = '', escape = '', comment = '', strict_mode = false, ignore_errors = true
)
LIMIT 1;
