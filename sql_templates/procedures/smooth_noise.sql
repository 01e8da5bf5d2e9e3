    sensitivity := sqlrs.fold(
      steps => {steps},
      starts => {starts},
      answers => {answers},
      monomials => {monomials},
      ceilings => {ceilings},
      degrees => {degrees},
      t => sqlrs.within({steps}, ARRAY[{values}]::numeric[]),
      ratio => ratio
    );
    answer := measured[1] + sqlrs.noise(sensitivity.numerator, sensitivity.places, ratio, {shape});
