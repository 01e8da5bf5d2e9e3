      clipped := sqlrs.clipped_numbers(
        groups => measured -> 0,
        place => {place},
        contributions => measured -> {found},
        thresholds => ARRAY[{thresholds}]::numeric[],
        epsilon => asked,
        shared => {shared},
        strict => {strict},
        signed => {signed},
        worth => {worth}
      );
      told_rows := told_rows || jsonb_build_array(clipped.numbers);
      told_clippings := told_clippings || jsonb_build_array(clipped.clipping);
