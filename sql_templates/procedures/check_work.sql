-- Refuse an epsilon whose weights fall so slowly that too many distances would have to be tried; public numbers alone.
CREATE OR REPLACE FUNCTION sqlrs.check_work(ratio numeric, degrees integer[], once numeric, most numeric)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
AS $sqlrs$
DECLARE
  -- Less than in sqlrs.turning_point, whose result may not fit into an integer.
  gap CONSTANT numeric := ratio * ratio - sqlrs.whole_power(2, 80) - sqlrs.whole_power(2, 18);
  distances numeric := 1;
BEGIN
  FOR g IN 1..cardinality(degrees) LOOP
    distances := distances * (2 * (div(degrees[g] * ratio * ratio, greatest(gap, 1)) + degrees[g]) + 3);
  END LOOP;
  IF (gap > 0 AND distances * once <= most) IS NOT TRUE THEN
    RAISE EXCEPTION 'epsilon is too small for so many groups: too many distances would have to be tried'
    USING ERRCODE = '54000', HINT = 'nothing was charged; ask with a larger epsilon, or through sqlrs query';
  END IF;
END
$sqlrs$;
