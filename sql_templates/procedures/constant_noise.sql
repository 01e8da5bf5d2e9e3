    -- Keys decide how much one row changes, or public tables alone do.
    vector := sqlrs.grow({answers}, 1, {length}, ARRAY[{values}]::numeric[] || 0::numeric);
    answer := measured[1] + sqlrs.laplace(asked, vector[{last}]);
