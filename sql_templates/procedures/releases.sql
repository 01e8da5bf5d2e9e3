-- The journal: every answer whose transaction was committed. Nothing in it is private.
-- No duration and no end time: how long a release takes depends on the data.
-- Each line keeps what was spent of both budgets with it, in units of 10^-12: a counter below that has gone back.
CREATE TABLE IF NOT EXISTS sqlrs.releases (
  ticket bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  analyst text NOT NULL,
  dataset text NOT NULL,
  query text NOT NULL,
  mechanism text NOT NULL,
  epsilon numeric NOT NULL,
  answer numeric NOT NULL,
  analyst_spent bigint NOT NULL,
  dataset_spent bigint NOT NULL
);

-- Only where something is missing: the locks of these statements wait for callers who leave transactions open.
DO $sqlrs$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM pg_attribute WHERE attrelid = 'sqlrs.releases'::regclass AND attname = 'analyst_spent'
  ) THEN
    ALTER TABLE sqlrs.releases
      ADD COLUMN analyst_spent bigint NOT NULL DEFAULT 0,
      ADD COLUMN dataset_spent bigint NOT NULL DEFAULT 0;
    UPDATE sqlrs.releases AS release
    SET analyst_spent = known.analyst_spent, dataset_spent = known.dataset_spent
    FROM (
      SELECT
        ticket,
        sum(epsilon) OVER (PARTITION BY analyst ORDER BY ticket) * 1e12 AS analyst_spent,
        sum(epsilon) OVER (PARTITION BY dataset ORDER BY ticket) * 1e12 AS dataset_spent
      FROM sqlrs.releases
    ) AS known
    WHERE known.ticket = release.ticket;
  END IF;
  IF to_regclass('sqlrs.releases_by_analyst') IS NULL THEN
    CREATE INDEX releases_by_analyst ON sqlrs.releases (analyst, dataset, epsilon);
  END IF;
  IF to_regclass('sqlrs.releases_by_analyst_spent') IS NULL THEN
    CREATE INDEX releases_by_analyst_spent ON sqlrs.releases (analyst, analyst_spent);
    CREATE INDEX releases_by_dataset_spent ON sqlrs.releases (dataset, dataset_spent);
  END IF;
END
$sqlrs$;
