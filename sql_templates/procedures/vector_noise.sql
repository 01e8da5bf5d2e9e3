      group_count := jsonb_array_length(measured);
      own_epsilon := trunc(asked * 1000000000000 / {shared}) / 1000000000000;
      -- The noise of all groups, one aggregate after the other.
      IF group_count > 0 THEN
{noises}      END IF;
      SELECT coalesce(
        jsonb_agg(jsonb_build_array(told.value -> 0, jsonb_build_array({noisy})) ORDER BY told.place), '[]'
      )
      INTO STRICT told_rows
      FROM jsonb_array_elements(measured) WITH ORDINALITY AS told (value, place);
