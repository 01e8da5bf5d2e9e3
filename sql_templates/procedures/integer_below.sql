-- A whole number from 0 on below a bound, each with the same probability: as many random bits as the bound needs, and
-- more of them where what came lies in the incomplete last multiple of the bound.
CREATE OR REPLACE FUNCTION sqlrs.integer_below(bound numeric)
RETURNS numeric
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  word CONSTANT numeric := 340282366920938463463374607431768211456;
  drawn numeric;
  all_drawn numeric;
BEGIN
  IF (bound >= 1 AND bound < 'Infinity' AND bound = trunc(bound)) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no whole number below such a bound';
  END IF;
  LOOP
    drawn := 0;
    all_drawn := 1;
    WHILE all_drawn < bound LOOP
      drawn := drawn * word + sqlrs.random_word();
      all_drawn := all_drawn * word;
    END LOOP;
    IF drawn < all_drawn - mod(all_drawn, bound) THEN
      RETURN mod(drawn, bound);
    END IF;
  END LOOP;
END
$sqlrs$;
