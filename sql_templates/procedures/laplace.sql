-- Discrete Laplace noise: a whole number y with probability proportional to exp(-|y| * epsilon / bound), exactly, for a
-- bound that is a whole number and an epsilon of at most 12 decimals. docs/proofs/procedures.md has the law.
CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric)
RETURNS numeric
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  step CONSTANT numeric := epsilon * 1000000000000;
  fine CONSTANT numeric := bound * 1000000000000;
  part numeric;
  size numeric;
BEGIN
  IF (bound >= 0 AND bound < 'Infinity' AND bound = trunc(bound)
    AND step >= 1 AND step < 'Infinity' AND step = trunc(step)) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no noise for such a bound';
  END IF;
  IF bound = 0 THEN
    RETURN 0;
  END IF;
  LOOP
    -- x = part + fine * whole has probability proportional to exp(-x / fine).
    part := sqlrs.integer_below(fine);
    CONTINUE WHEN NOT sqlrs.exponential_coin(part, fine);
    WHILE sqlrs.exponential_coin(1, 1) LOOP
      part := part + fine;
    END LOOP;
    size := div(part, step);
    -- Zero would come up under either sign: it counts under one of them only.
    IF mod(sqlrs.random_word(), 2) = 0 THEN
      RETURN size;
    ELSIF size > 0 THEN
      RETURN -size;
    END IF;
  END LOOP;
END
$sqlrs$;
