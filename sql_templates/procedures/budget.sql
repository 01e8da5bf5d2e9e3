-- What the caller has spent and may still spend, on each dataset: for analysts.
-- What is left of a dataset shows what all analysts together have asked, nothing about the data. The tables are read
-- and not the view: an open transaction of a caller would keep an installation from replacing it.
CREATE OR REPLACE FUNCTION sqlrs.budget()
RETURNS TABLE (dataset text, cap numeric, spent numeric, remaining numeric)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
  WITH balance AS (
    SELECT one.kind, one.name, one.cap, sqlrs.spent_units(one.kind, one.name, one.spent) * 1e-12 AS spent
    FROM sqlrs.budgets AS one
  )
  SELECT
    shared.name,
    own.cap,
    trim_scale(own.spent),
    CASE
      WHEN own.spent <= own.cap AND shared.spent <= shared.cap
        THEN trim_scale(least(own.cap - own.spent, shared.cap - shared.spent))
      ELSE 0
    END
  FROM balance AS own
  CROSS JOIN balance AS shared
  WHERE own.kind = 'analyst'
    AND own.name = session_user
    AND shared.kind = 'dataset'
  ORDER BY shared.name
$sqlrs$;
