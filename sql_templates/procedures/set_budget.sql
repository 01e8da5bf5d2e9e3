-- The cap of one budget, over all time.
SELECT sqlrs.grant_budget({kind}, {name}, {cap});
