  -- What stands above the released rows reads nothing else: it is free, also for a repeat.
  EXECUTE $keys${types}$keys$ INTO STRICT key_types;
  RETURN QUERY EXECUTE
    'WITH released_0 AS (SELECT ' || {columns}
    || ' FROM jsonb_array_elements($1) WITH ORDINALITY AS told (value, place))'
    || $above$
{above}
$above$
  USING told_rows;
