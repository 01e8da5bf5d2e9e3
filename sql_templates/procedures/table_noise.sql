      bounds := ARRAY[{bounds}]::numeric[];
      WITH noisy AS MATERIALIZED (
        SELECT
          told.place,
          told.value -> 0 AS keys,
          jsonb_build_array({noisy}) AS numbers
        FROM jsonb_array_elements(measured) WITH ORDINALITY AS told (value, place)
      )
      SELECT coalesce(jsonb_agg(jsonb_build_array(noisy.keys, noisy.numbers) ORDER BY noisy.place), '[]')
      INTO STRICT told_rows
      FROM noisy;
