-- For every distance vector s of a box: the greatest weight * ceiling at s or beyond, as far as the ceiling can still
-- rise; past its turning point a direction only falls. The vector s stands at place 1 + s_1 + s_2 sizes_1 + ..
-- A row of monomials is the number of an answer and the powers c_1 .. c_m: the ceiling is the greatest, over the
-- answers, of the sum of coefficient * binomial(s_1, c_1) * .. * binomial(s_m, c_m).
CREATE OR REPLACE FUNCTION sqlrs.horizon(
  monomials integer[], coefficients numeric[], sizes integer[], turns integer[], weights numeric[]
)
RETURNS numeric[]
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  tables CONSTANT integer := cardinality(sizes);
  powers CONSTANT integer := 1 + (SELECT max(power) FROM unnest(0 || monomials) AS power);
  cells integer := 1;
  strides integer[] := ARRAY[]::integer[];
  binomials numeric[] := ARRAY[]::numeric[];
  found numeric[];
  digits integer[] := array_fill(0, ARRAY[tables]);
  rest integer;
  total integer;
  at integer;
  answer integer;
  term numeric;
  value numeric;
  above numeric;
BEGIN
  FOR g IN 1..tables LOOP
    strides[g] := cells;
    cells := cells * sizes[g];
  END LOOP;
  FOR s IN 0..(SELECT max(size) FROM unnest(1 || sizes) AS size) - 1 LOOP
    binomials[s * powers + 1] := 1;
    FOR c IN 1..powers - 1 LOOP
      binomials[s * powers + c + 1] := CASE
        WHEN s = 0 THEN 0
        ELSE binomials[(s - 1) * powers + c] + binomials[(s - 1) * powers + c + 1]
      END;
    END LOOP;
  END LOOP;
  found := array_fill(0::numeric, ARRAY[cells]);
  FOR place IN REVERSE cells - 1..0 LOOP
    rest := place;
    total := 0;
    FOR g IN 1..tables LOOP
      digits[g] := rest % sizes[g];
      total := total + digits[g];
      rest := rest / sizes[g];
    END LOOP;
    answer := 0;
    value := 0;
    above := 0;
    at := 1;
    FOR i IN 1..cardinality(coefficients) LOOP
      IF monomials[at] <> answer THEN
        answer := monomials[at];
        value := 0;
      END IF;
      term := coefficients[i];
      FOR g IN 1..tables LOOP
        IF monomials[at + g] > 0 THEN
          term := term * binomials[digits[g] * powers + monomials[at + g] + 1];
        END IF;
      END LOOP;
      value := value + term;
      IF value > above THEN
        above := value;
      END IF;
      at := at + tables + 1;
    END LOOP;
    above := above * weights[total + 1];
    FOR g IN 1..tables LOOP
      IF digits[g] < turns[g] AND found[place + strides[g] + 1] > above THEN
        above := found[place + strides[g] + 1];
      END IF;
    END LOOP;
    found[place + 1] := above;
  END LOOP;
  RETURN found;
END
$sqlrs$;
