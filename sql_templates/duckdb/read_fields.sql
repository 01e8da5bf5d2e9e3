-- The lines of an edge list as lists of texts; comments are no lines.
SELECT fields
FROM (
  SELECT regexp_split_to_array(trim(line), $gap) AS fields
  FROM read_csv(
    $path,
    auto_detect = false, header = false, skip = $skip, columns = {'line': 'VARCHAR'},
    delim = '', quote = '', escape = '', comment = '', strict_mode = false
  )
  WHERE NOT regexp_matches(line, '^\s*([#%]|$)')
);
