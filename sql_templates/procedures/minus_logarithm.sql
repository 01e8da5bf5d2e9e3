-- -ln(uniform / 2^length) from below and from above, in units of 2^-places, for a whole number from 1 to 2^length:
-- uniform is y * 2^e with y from 1 to 2, and the logarithm that of y, and of 2 as often as it is halved.
CREATE OR REPLACE FUNCTION sqlrs.minus_logarithm(
  uniform numeric,
  length integer,
  places integer,
  OUT low numeric,
  OUT high numeric
)
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  power numeric := sqlrs.whole_power(2, length);
  halvings integer := 0;
  two record;
  rest record;
BEGIN
  IF (uniform >= 1 AND uniform <= power AND uniform = trunc(uniform)) IS NOT TRUE THEN
    RAISE EXCEPTION 'there is no logarithm for such a number';
  END IF;
  WHILE power > uniform LOOP
    power := div(power, 2);
    halvings := halvings + 1;
  END LOOP;
  two := sqlrs.log_series(1, 3, places);
  rest := sqlrs.log_series(uniform - power, uniform + power, places);
  low := greatest(0, halvings * two.low - rest.high);
  high := greatest(0, halvings * two.high - rest.low);
END
$sqlrs$;
