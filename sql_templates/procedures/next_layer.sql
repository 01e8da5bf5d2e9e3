-- The vectors at all distances of total k, from those of total k - 1: T_s = max over tables g of step g from T_(s - e_g).
-- With m tables the vector at s_1 .. s_m stands at the place whose digits to the base k + 1 are s_1 .. s_(m-1);
-- places with a digit sum above k are empty.
CREATE OR REPLACE FUNCTION sqlrs.next_layer(
  steps integer[], starts integer[], layer numeric[], width integer, k integer
)
RETURNS numeric[]
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  tables CONSTANT integer := cardinality(starts) - 1;
  places CONSTANT integer := sqlrs.whole_power(k + 1, tables - 1);
  found numeric[] := array_fill(NULL::numeric, ARRAY[places * width]);
  digits integer[];
  rest integer;
  number integer;
  before integer;
  at integer;
  grown numeric[];
  best numeric[];
BEGIN
  FOR place IN 0..places - 1 LOOP
    digits := ARRAY[]::integer[];
    rest := k;
    number := place;
    FOR g IN 1..tables - 1 LOOP
      digits := digits || number % (k + 1);
      rest := rest - number % (k + 1);
      number := number / (k + 1);
    END LOOP;
    CONTINUE WHEN rest < 0;
    digits := digits || rest;
    best := NULL;
    FOR g IN 1..tables LOOP
      CONTINUE WHEN digits[g] = 0;
      before := 0;
      FOR h IN REVERSE tables - 1..1 LOOP
        before := before * k + digits[h] - CASE WHEN h = g THEN 1 ELSE 0 END;
      END LOOP;
      grown := sqlrs.grow(
        steps, starts[g], starts[g + 1] - 1, layer[before * width + 1:(before + 1) * width]
      );
      IF best IS NULL THEN
        best := grown;
      ELSE
        FOR i IN 1..width LOOP
          IF grown[i] > best[i] THEN
            best[i] := grown[i];
          END IF;
        END LOOP;
      END IF;
    END LOOP;
    at := place * width;
    FOR i IN 1..width LOOP
      found[at + i] := best[i];
    END LOOP;
  END LOOP;
  RETURN found;
END
$sqlrs$;
