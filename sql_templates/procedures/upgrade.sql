-- Brings the tables from the version that they have to the newest, and keeps all that is spent and recorded. A schema
-- from before version 3 is known by its columns. One that is newer, or of no version, is refused.
DO $sqlrs$
DECLARE
  newest CONSTANT integer := {newest};
  version_1 CONSTANT text[] := ARRAY[
    'budgets.cap numeric', 'budgets.kind text', 'budgets.name text', 'budgets.spent regclass',
    'queries.dataset text', 'queries.installed_at timestamp with time zone', 'queries.least_epsilon numeric',
    'queries.name text', 'queries.repeats boolean', 'queries.shape integer', 'queries.sql text',
    'releases.analyst text', 'releases.answer numeric', 'releases.at timestamp with time zone',
    'releases.dataset text', 'releases.epsilon numeric', 'releases.mechanism text', 'releases.query text',
    'releases.ticket bigint'
  ];
  version_2 CONSTANT text[] := version_1 || ARRAY['releases.analyst_spent bigint', 'releases.dataset_spent bigint'];
  present CONSTANT text[] := ARRAY(
    SELECT
      format('%s.%s %s', class.relname, attribute.attname, format_type(attribute.atttypid, attribute.atttypmod))
        || CASE WHEN attribute.attnotnull THEN '' ELSE ' NULL' END
    FROM pg_class AS class
    JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    WHERE class.relnamespace = 'sqlrs'::regnamespace AND class.relname IN ('budgets', 'queries', 'releases')
  );
  here integer;
BEGIN
  IF to_regclass('sqlrs.version') IS NOT NULL THEN
    SELECT CASE WHEN count(*) = 1 AND min(recorded.version) >= 3 THEN min(recorded.version) END INTO here
    FROM sqlrs.version AS recorded;
  ELSE
    here := CASE
      WHEN cardinality(present) = 0 THEN 0
      WHEN present @> version_1 AND present <@ version_1 THEN 1
      WHEN present @> version_2 AND present <@ version_2 THEN 2
    END;
  END IF;
  IF here IS NULL THEN
    RAISE EXCEPTION 'the tables of the schema sqlrs are of no version that sqlrs knows'
    USING ERRCODE = 'RS002', HINT = 'bring back its newest backup, or drop the schema and its budgets with it';
  END IF;
  IF here > newest THEN
    RAISE EXCEPTION 'the schema sqlrs has version %, and this sqlrs installs version %', here, newest
    USING ERRCODE = 'RS002', HINT = 'upgrade sqlrs here too; a schema never goes back to an older version';
  END IF;
{steps}
  UPDATE sqlrs.version SET version = newest, edition = {edition};
END
$sqlrs$;
