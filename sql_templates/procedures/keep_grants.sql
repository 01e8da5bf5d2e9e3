-- Who may call the function still may, also where it was made anew.
DO $sqlrs$
DECLARE
  role text;
BEGIN
  FOR role IN SELECT jsonb_array_elements_text(nullif(current_setting('sqlrs.callers', true), '')::jsonb) LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION sqlrs.%I TO %s', {name}, role);
  END LOOP;
END
$sqlrs$;
