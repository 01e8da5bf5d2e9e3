    ratio := sqlrs.smoothness_ratio(asked, {shape});
