-- The vector with no value above the product of its factors, which on one database none is. The form of the program is
-- told at sqlrs.grow.
CREATE OR REPLACE FUNCTION sqlrs.within(program integer[], t numeric[])
RETURNS numeric[]
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  lowered numeric[] := t;
  at integer;
  target integer;
  gains integer;
  listed integer;
  total numeric;
  changed boolean := true;
BEGIN
  WHILE changed LOOP
    changed := false;
    at := 1;
    WHILE at <= cardinality(program) LOOP
      target := program[at];
      gains := program[at + 1];
      at := at + 2;
      FOR gain IN 1..gains LOOP
        at := at + 2 + program[at + 1];
      END LOOP;
      listed := program[at];
      at := at + 1;
      IF listed >= 0 THEN
        total := 1;
        FOR i IN at..at + listed - 1 LOOP
          total := total * lowered[program[i]];
        END LOOP;
        IF total < lowered[target] THEN
          lowered[target] := total;
          changed := true;
        END IF;
        at := at + listed;
      END IF;
    END LOOP;
  END LOOP;
  RETURN lowered;
END
$sqlrs$;
