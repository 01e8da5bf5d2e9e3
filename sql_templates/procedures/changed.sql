-- The first table or view that is no longer as a query was compiled for; the empty text where all are. What a query
-- relies on must still be there: types, columns without NULL, keys. What came in addition does no harm.
CREATE OR REPLACE FUNCTION sqlrs.changed(facts jsonb)
RETURNS text
LANGUAGE plpgsql
STABLE
AS $sqlrs$
DECLARE
  one jsonb;
BEGIN
  FOR one IN SELECT value FROM jsonb_array_elements(facts -> 'tables') LOOP
    IF (sqlrs.table_facts(one ->> 'schema', one ->> 'name') @> one) IS NOT TRUE THEN
      RETURN format('table %I.%I', one ->> 'schema', one ->> 'name');
    END IF;
  END LOOP;
  FOR one IN SELECT value FROM jsonb_array_elements(facts -> 'views') LOOP
    IF (
      SELECT rtrim(pg_get_viewdef(class.oid), E'; \n') = one ->> 'sql'
      FROM pg_class AS class
      JOIN pg_namespace AS space ON space.oid = class.relnamespace
      WHERE space.nspname = one ->> 'schema' AND class.relname = one ->> 'name' AND class.relkind = 'v'
    ) IS NOT TRUE THEN
      RETURN format('view %I.%I', one ->> 'schema', one ->> 'name');
    END IF;
  END LOOP;
  RETURN '';
END
$sqlrs$;
