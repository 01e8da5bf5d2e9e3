-- What the caller has spent and may still spend, on each dataset: for analysts.
-- What is left of a dataset shows what all analysts together have asked, nothing about the data.
CREATE OR REPLACE FUNCTION sqlrs.budget()
RETURNS TABLE (dataset text, cap numeric, spent numeric, remaining numeric)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
  SELECT
    shared.name,
    own.cap,
    trim_scale(own.spent),
    trim_scale(greatest(0, least(own.cap - own.spent, shared.cap - shared.spent)))
  FROM sqlrs.balances AS own
  CROSS JOIN sqlrs.balances AS shared
  WHERE own.kind = 'analyst'
    AND own.name = session_user
    AND shared.kind = 'dataset'
  ORDER BY shared.name
$sqlrs$;
