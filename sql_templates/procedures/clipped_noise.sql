      -- First what each unit contributes is cut, then noise is added; each aggregate has its own part of epsilon.
      told_rows := '[]';
      told_clippings := '[]';
{released}
      SELECT coalesce(jsonb_agg(jsonb_build_array(told.value -> 0, numbers.value) ORDER BY told.place), '[]')
      INTO STRICT told_rows
      FROM jsonb_array_elements(measured -> 0) WITH ORDINALITY AS told (value, place)
      CROSS JOIN LATERAL (
        SELECT jsonb_agg(one_measure.value -> (told.place - 1)::integer ORDER BY one_measure.place)
        FROM jsonb_array_elements(told_rows) WITH ORDINALITY AS one_measure (value, place)
      ) AS numbers (value);
