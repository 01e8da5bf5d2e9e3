-- Version 2. Each line of the journal keeps what was spent of both budgets with it, in units of 10^-12: a counter below
-- that has gone back. Lines from before know what the journal had seen.
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
ALTER TABLE sqlrs.releases
  ALTER COLUMN analyst_spent DROP DEFAULT,
  ALTER COLUMN dataset_spent DROP DEFAULT;
CREATE INDEX releases_by_analyst_spent ON sqlrs.releases (analyst, analyst_spent);
CREATE INDEX releases_by_dataset_spent ON sqlrs.releases (dataset, dataset_spent);
-- Functions of version 1 spent through this one.
DROP FUNCTION IF EXISTS sqlrs.charge(text, text, text, numeric);
