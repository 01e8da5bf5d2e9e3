  -- They stand in the journal.
  IF (coalesce(greatest({lengths}), 0) <= 1000) IS NOT TRUE THEN
    RAISE EXCEPTION 'an argument is longer than 1000 bytes'
    USING ERRCODE = '22023', HINT = 'nothing was charged; give a shorter one';
  END IF;
