-- The journal: every answer whose transaction was committed. Nothing in it is private.
-- No duration and no end time: how long a release takes depends on the data.
CREATE TABLE IF NOT EXISTS sqlrs.releases (
  ticket bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  analyst text NOT NULL,
  dataset text NOT NULL,
  query text NOT NULL,
  mechanism text NOT NULL,
  epsilon numeric NOT NULL,
  answer numeric NOT NULL
);

CREATE INDEX IF NOT EXISTS releases_by_analyst ON sqlrs.releases (analyst, dataset, epsilon);
