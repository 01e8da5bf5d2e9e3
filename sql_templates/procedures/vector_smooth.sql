      ratio := sqlrs.smoothness_ratio(own_epsilon, 5 * {size});
      total := 0;
      total_places := 0;
{terms}      noises := noises || {noise};
