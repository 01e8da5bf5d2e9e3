-- base^exponent for a whole exponent of 0 or more, exactly: the operator ^ rounds.
CREATE OR REPLACE FUNCTION sqlrs.whole_power(base numeric, exponent integer)
RETURNS numeric
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  result numeric := 1;
  square numeric := base;
  rest integer := exponent;
BEGIN
  WHILE rest > 0 LOOP
    IF rest % 2 = 1 THEN
      result := result * square;
    END IF;
    rest := rest / 2;
    IF rest > 0 THEN
      square := square * square;
    END IF;
  END LOOP;
  RETURN result;
END
$sqlrs$;
