-- Whether the numbers that are measured so far settle the sensitivity: it is the same with 0 and with the limits of all
-- others. The limits are those of the last numbers. The program of products lists for each value of the vector the number
-- of its factors and their places among the numbers.
CREATE OR REPLACE FUNCTION sqlrs.settled(
  steps integer[],
  starts integer[],
  answers integer[],
  monomials integer[],
  ceilings integer[],
  degrees integer[],
  products integer[],
  measured numeric[],
  limits numeric[],
  total integer,
  ratio numeric
)
RETURNS boolean
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  known CONSTANT integer := cardinality(measured);
  least_values numeric[] := ARRAY[]::numeric[];
  most_values numeric[] := ARRAY[]::numeric[];
  least_value numeric;
  most_value numeric;
  at integer := 1;
  place integer;
  low record;
  high record;
BEGIN
  -- Two folds take longer than they could save.
  IF ratio IS NULL THEN
    RETURN false;
  END IF;
  WHILE at <= cardinality(products) LOOP
    least_value := 1;
    most_value := 1;
    FOR i IN at + 1..at + products[at] LOOP
      place := products[i];
      least_value := least_value * CASE WHEN place <= known THEN measured[place] ELSE 0 END;
      most_value := most_value
        * CASE WHEN place <= known THEN measured[place] ELSE limits[place - total + cardinality(limits)] END;
    END LOOP;
    least_values := least_values || least_value;
    most_values := most_values || most_value;
    at := at + 1 + products[at];
  END LOOP;
  low := sqlrs.fold(
    steps, starts, answers, monomials, ceilings, degrees, sqlrs.within(steps, least_values), ratio
  );
  high := sqlrs.fold(
    steps, starts, answers, monomials, ceilings, degrees, sqlrs.within(steps, most_values), ratio
  );
  RETURN coalesce(
    low.numerator * sqlrs.whole_power(2, high.places) = high.numerator * sqlrs.whole_power(2, low.places), false
  );
END
$sqlrs$;
