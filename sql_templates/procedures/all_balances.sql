-- Every budget, for the owner.
SELECT kind, name, cap, trim_scale(spent), trim_scale(recorded) FROM sqlrs.balances ORDER BY kind, name;
