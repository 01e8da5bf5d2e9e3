-- Version 3. The schema says which version its tables have and which edition its functions are of; and of which
-- edition each query's function is.
CREATE TABLE sqlrs.version (
  version integer NOT NULL,
  edition text NOT NULL
);
INSERT INTO sqlrs.version (version, edition) VALUES (3, '');
ALTER TABLE sqlrs.queries ADD COLUMN edition text NOT NULL DEFAULT '';
-- Functions of the versions before have no edition to compare. This is what they call first.
IF to_regprocedure('sqlrs.check_epsilon(numeric, numeric)') IS NOT NULL THEN
  DROP FUNCTION sqlrs.check_epsilon(numeric, numeric);
  CREATE FUNCTION sqlrs.check_epsilon(epsilon numeric, least_epsilon numeric)
  RETURNS void
  LANGUAGE plpgsql
  AS $older$
  BEGIN
    RAISE EXCEPTION 'the function was installed by another version of sqlrs'
    USING ERRCODE = '55000', HINT = 'nothing was charged; the data owner installs the function again: sqlrs install';
  END
  $older$;
END IF;
