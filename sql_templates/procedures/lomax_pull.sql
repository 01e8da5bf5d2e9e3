-- The pull of the Lomax law of so many coordinates, in units of 2^-64: the noise has the scale S / pull and is
-- epsilon-private for sensitivities that change by at most ratio^2 / 2^80 between neighbours. A fifth of epsilon pays
-- for that, the rest for the shift. docs/proofs/procedures.md has the conditions.
CREATE OR REPLACE FUNCTION sqlrs.lomax_pull(epsilon numeric, size integer, ratio numeric)
RETURNS numeric
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  whole CONSTANT numeric := trunc(epsilon * 1000000000000);
  -- The coordinates and the shape, five times as many.
  power CONSTANT numeric := 6 * size::numeric * 1000000000000;
  one CONSTANT numeric := sqlrs.whole_power(2, 160);
BEGIN
  RETURN least(
    div(ratio * ratio * (sqlrs.growth(4 * whole, 5 * power) - one), sqlrs.whole_power(2, 176)),
    div(sqlrs.growth(whole, power) - one, sqlrs.whole_power(2, 96))
  );
END
$sqlrs$;
