      sensitivity := sqlrs.fold(
        steps => {steps},
        starts => {starts},
        answers => {answers},
        monomials => {monomials},
        ceilings => {ceilings},
        degrees => {degrees},
        t => ARRAY[{values}]::numeric[],
        ratio => ratio
      );
      places := greatest(total_places, sensitivity.places);
      total := total * sqlrs.whole_power(2, places - total_places)
        + {factor} * sensitivity.numerator * sqlrs.whole_power(2, places - sensitivity.places);
      total_places := places;
