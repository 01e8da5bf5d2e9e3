-- The installed queries, one function each.
CREATE TABLE IF NOT EXISTS sqlrs.queries (
  name text PRIMARY KEY,
  dataset text NOT NULL,
  sql text NOT NULL,
  shape integer NOT NULL,
  least_epsilon numeric NOT NULL,
  repeats boolean NOT NULL,
  installed_at timestamptz NOT NULL
);
