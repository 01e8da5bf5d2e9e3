-- The first line of an edge list that is no edge, and its number; nothing of it is shown.
SELECT place, line
FROM (
  SELECT row_number() OVER () AS place, line
  FROM read_csv(
    $path,
    auto_detect = false, header = false, skip = $skip, columns = {'line': 'VARCHAR'},
    delim = '', quote = '', escape = '', comment = '', strict_mode = false
  )
)
WHERE NOT regexp_matches(line, '^\s*([#%]|$)') AND NOT $fits
ORDER BY place
LIMIT 1;
