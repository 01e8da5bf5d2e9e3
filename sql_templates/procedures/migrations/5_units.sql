-- Version 5. Who is protected. Each dataset has one unit, for epsilons of different promises do not add up: "row", or the
-- name of a unit that owns many rows. Answers about units have a line beside the journal's: the unit, and for each
-- aggregate the threshold that units were cut to with the standard error of its noise. All that was before is about rows.
CREATE TABLE sqlrs.dataset_units (
  dataset text PRIMARY KEY,
  unit text NOT NULL
);
INSERT INTO sqlrs.dataset_units (dataset, unit)
SELECT dataset, 'row' FROM sqlrs.queries
UNION
SELECT dataset, 'row' FROM sqlrs.releases
UNION
SELECT name, 'row' FROM sqlrs.budgets WHERE kind = 'dataset';
CREATE TABLE sqlrs.released_units (
  ticket bigint PRIMARY KEY,
  unit text NOT NULL,
  clippings jsonb NOT NULL
);
-- The history of an analyst tells them. A function that returns more is another one: who may call it still may.
DECLARE
  callers CONSTANT text[] := ARRAY(
    SELECT granted.grantee::regrole::text
    FROM pg_proc AS routine
    CROSS JOIN LATERAL aclexplode(routine.proacl) AS granted
    WHERE routine.oid = to_regprocedure('sqlrs.history()') AND granted.grantee NOT IN (0, routine.proowner)
  );
  caller text;
BEGIN
  DROP FUNCTION IF EXISTS sqlrs.history();
  CREATE FUNCTION sqlrs.history()
  RETURNS TABLE (
    at timestamptz, dataset text, query text, mechanism text, epsilon numeric, answer numeric, unit text, clippings jsonb
  )
  LANGUAGE sql
  AS 'SELECT NULL::timestamptz, '''', '''', '''', 0.0, 0.0, '''', NULL::jsonb LIMIT 0';
  FOREACH caller IN ARRAY callers LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION sqlrs.history() TO %s', caller);
  END LOOP;
END;
