-- A cap on the sum of all epsilons of one analyst or of one dataset, over all time.
-- What is spent is the value of a sequence, in units of 10^-12: unlike a row it survives a rollback.
CREATE TABLE IF NOT EXISTS sqlrs.budgets (
  kind text NOT NULL CHECK (kind IN ('analyst', 'dataset')),
  name text NOT NULL,
  cap numeric NOT NULL CHECK (cap BETWEEN 0 AND 1000000 AND cap = round(cap, 12)),
  spent regclass NOT NULL UNIQUE,
  PRIMARY KEY (kind, name)
);
