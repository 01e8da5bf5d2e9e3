-- Whether any number of steps can move the answer. Only which values are positive matters, and those stay so.
-- The last place of t holds the answer's bound.
CREATE OR REPLACE FUNCTION sqlrs.can_change(steps integer[], starts integer[], answers integer[], t numeric[])
RETURNS boolean
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  width CONSTANT integer := cardinality(t);
  support numeric[] := t;
  grown numeric[];
  changed boolean := true;
BEGIN
  FOR i IN 1..width LOOP
    support[i] := least(support[i], 1);
  END LOOP;
  WHILE changed LOOP
    changed := false;
    FOR g IN 1..cardinality(starts) - 1 LOOP
      grown := sqlrs.grow(steps, starts[g], starts[g + 1] - 1, support);
      FOR i IN 1..width LOOP
        IF support[i] = 0 AND grown[i] > 0 THEN
          support[i] := 1;
          changed := true;
        END IF;
      END LOOP;
    END LOOP;
  END LOOP;
  grown := sqlrs.grow(answers, 1, cardinality(answers), support);
  RETURN grown[width] > 0;
END
$sqlrs$;
