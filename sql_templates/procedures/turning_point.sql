-- A distance from which the weights fall faster than a binomial of this degree rises. The factor between two
-- weights is at most 2^80 / ratio^2 * (1 + 2^-63), for the rounding.
CREATE OR REPLACE FUNCTION sqlrs.turning_point(ratio numeric, degree integer)
RETURNS integer
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  one CONSTANT numeric := ratio * ratio * sqlrs.whole_power(2, 63);
  gap CONSTANT numeric := one - sqlrs.whole_power(2, 80) * (sqlrs.whole_power(2, 63) + 1);
BEGIN
  RETURN greatest(degree, div(degree * one + gap - 1, gap) - 1);
END
$sqlrs$;
