-- The caller's own lines of the journal, oldest first: for analysts. Where units are protected, clippings have the
-- threshold and the standard error of each aggregate.
CREATE OR REPLACE FUNCTION sqlrs.history()
RETURNS TABLE (
  at timestamptz, dataset text, query text, mechanism text, epsilon numeric, answer numeric, unit text, clippings jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
  SELECT
    release.at,
    release.dataset,
    release.query,
    release.mechanism,
    release.epsilon,
    release.answer,
    coalesce(protected.unit, 'row'),
    protected.clippings
  FROM sqlrs.releases AS release
  LEFT JOIN sqlrs.released_units AS protected ON protected.ticket = release.ticket
  WHERE release.analyst = session_user
  ORDER BY release.ticket
$sqlrs$;
