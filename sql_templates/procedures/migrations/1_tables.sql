-- Version 1. A cap on the sum of all epsilons of one analyst or of one dataset, over all time.
-- What is spent is the value of a sequence, in units of 10^-12: unlike a row it survives a rollback.
CREATE TABLE sqlrs.budgets (
  kind text NOT NULL CHECK (kind IN ('analyst', 'dataset')),
  name text NOT NULL,
  cap numeric NOT NULL CHECK (cap BETWEEN 0 AND 1000000 AND cap = round(cap, 12)),
  spent regclass NOT NULL UNIQUE,
  PRIMARY KEY (kind, name)
);

-- The journal: every answer whose transaction was committed. Nothing in it is private.
-- No duration and no end time: how long a release takes depends on the data.
CREATE TABLE sqlrs.releases (
  ticket bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  analyst text NOT NULL,
  dataset text NOT NULL,
  query text NOT NULL,
  mechanism text NOT NULL,
  epsilon numeric NOT NULL,
  answer numeric NOT NULL
);
CREATE INDEX releases_by_analyst ON sqlrs.releases (analyst, dataset, epsilon);

-- The installed queries, one function each.
CREATE TABLE sqlrs.queries (
  name text PRIMARY KEY,
  dataset text NOT NULL,
  sql text NOT NULL,
  shape integer NOT NULL,
  least_epsilon numeric NOT NULL,
  repeats boolean NOT NULL,
  installed_at timestamptz NOT NULL
);
