-- The caller's own lines of the journal, oldest first: for analysts.
CREATE OR REPLACE FUNCTION sqlrs.history()
RETURNS TABLE (at timestamptz, dataset text, query text, mechanism text, epsilon numeric, answer numeric)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $sqlrs$
  SELECT release.at, release.dataset, release.query, release.mechanism, release.epsilon, release.answer
  FROM sqlrs.releases AS release
  WHERE release.analyst = session_user
  ORDER BY release.ticket
$sqlrs$;
