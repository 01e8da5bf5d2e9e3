  -- Public; an INFO reaches the caller whatever the settings are.
  FOR one IN
    SELECT told.value FROM jsonb_array_elements(told_clippings) WITH ORDINALITY AS told (value, place) ORDER BY told.place
  LOOP
    RAISE INFO 'units of % above % were cut to %; standard error %',
      this_unit, one ->> 0, one ->> 0, round((one ->> 1)::numeric, 2);
  END LOOP;
