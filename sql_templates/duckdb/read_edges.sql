-- The lines of an edge list as two texts, empty ones where a line is no edge; comments are no lines.
SELECT
  fields.source AS src,
  fields.target AS dst
FROM (
  SELECT regexp_extract(line, $form, ['source', 'target']) AS fields
  FROM read_csv(
    $path,
    auto_detect = false, header = false, skip = $skip, columns = {'line': 'VARCHAR'},
    delim = '', quote = '', escape = '', comment = '', strict_mode = false
  )
  WHERE NOT regexp_matches(line, '^\s*([#%]|$)')
);
