-- The m of the ratio r = m / 2^40, the largest that a lower bound of e^(epsilon / (2 shape)) allows: the noise
-- of this shape is epsilon-private for sensitivities that change by at most the factor r^2 between neighbours.
-- The bound is a sum of the power series, every term rounded down to 160 binary places.
CREATE OR REPLACE FUNCTION sqlrs.smoothness_ratio(epsilon numeric, shape integer)
RETURNS numeric
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  numerator CONSTANT numeric := trunc(epsilon * 1000000000000);
  denominator CONSTANT numeric := 2000000000000 * shape::numeric;
  term numeric := sqlrs.whole_power(2, 160);
  total numeric := term;
  place integer := 1;
BEGIN
  WHILE term > 0 LOOP
    term := div(term * numerator, denominator * place);
    total := total + term;
    place := place + 1;
  END LOOP;
  RETURN div(total, sqlrs.whole_power(2, 120));
END
$sqlrs$;
