  FOR one IN
    SELECT told.value FROM jsonb_array_elements(told_rows) WITH ORDINALITY AS told (value, place) ORDER BY told.place
  LOOP
{outputs}
    RETURN NEXT;
  END LOOP;
