-- The lines of a SNAP edge list as two integers; NULLs mark a line that is not two integers.
SELECT
  try_cast(fields.source AS BIGINT) AS src,
  try_cast(fields.target AS BIGINT) AS dst
FROM (
  SELECT regexp_extract(line, '^\s*([+-]?\d+)\s+([+-]?\d+)\s*$', ['source', 'target']) AS fields
  FROM read_csv(
    $path,
    auto_detect = false, header = false, columns = {'line': 'VARCHAR'},
    delim = '', quote = '', escape = '', comment = '', strict_mode = false
  )
  WHERE NOT regexp_matches(line, '^\s*(#|$)')
);
