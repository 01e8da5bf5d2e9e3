-- Every budget with what is spent of it, and the part of that which the journal explains.
-- The rest was charged by calls that failed or that their callers rolled back. NULL: it is not certain what is spent.
CREATE OR REPLACE VIEW sqlrs.balances AS
SELECT
  budget.kind,
  budget.name,
  budget.cap,
  sqlrs.spent_units(budget.kind, budget.name, budget.spent) * 1e-12 AS spent,
  coalesce(
    (
      SELECT sum(release.epsilon)
      FROM sqlrs.releases AS release
      WHERE budget.name = CASE budget.kind WHEN 'analyst' THEN release.analyst ELSE release.dataset END
    ),
    0
  ) AS recorded
FROM sqlrs.budgets AS budget;
