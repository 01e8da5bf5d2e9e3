-- Refuses the call of a function that was not installed with the functions that the schema has now: what one relies on,
-- the others may no longer do. Its signature stays for ever, because functions of every later version call it first.
-- Then it refuses an epsilon that is no decimal number between 0.000001 and 1000 with at most 12 decimals, or that is
-- below the least one that the function was installed for.
CREATE OR REPLACE FUNCTION sqlrs.check_call(edition text, epsilon numeric, least_epsilon numeric)
RETURNS void
LANGUAGE plpgsql
STABLE
AS $sqlrs$
BEGIN
  IF (SELECT array_agg(one.edition) FROM sqlrs.version AS one) IS DISTINCT FROM ARRAY[check_call.edition] THEN
    RAISE EXCEPTION 'the function was installed by another version of sqlrs'
    USING ERRCODE = '55000', HINT = 'nothing was charged; the data owner installs the function again: sqlrs install';
  END IF;
  IF (epsilon BETWEEN 0.000001 AND 1000 AND epsilon = round(epsilon, 12)) IS NOT TRUE THEN
    RAISE EXCEPTION 'epsilon must be a decimal number from 0.000001 to 1000 with at most 12 decimals'
    USING ERRCODE = '22023', HINT = 'such as 1 or 0.5';
  END IF;
  IF (epsilon >= least_epsilon) IS NOT TRUE THEN
    RAISE EXCEPTION 'epsilon must be at least % for this query', trim_scale(least_epsilon)
    USING
      ERRCODE = '22023',
      HINT = 'a smaller one looks at more distances than a database function can in reasonable time';
  END IF;
END
$sqlrs$;
