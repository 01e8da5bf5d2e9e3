-- 128 random bits as a whole number, from the server's cryptographic generator.
-- Two digits of a random UUID are fixed: the 13th names its version, the 17th its variant.
CREATE OR REPLACE FUNCTION sqlrs.random_word()
RETURNS numeric
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  digits text := '';
  uuid text;
  word numeric := 0;
BEGIN
  FOR i IN 1..2 LOOP
    uuid := replace(gen_random_uuid()::text, '-', '');
    digits := digits || left(uuid, 12) || substr(uuid, 14, 3) || right(uuid, 15);
  END LOOP;
  FOR i IN 0..3 LOOP
    word := word * 4294967296 + ('x' || lpad(substr(digits, 8 * i + 1, 8), 16, '0'))::bit(64)::bigint;
  END LOOP;
  RETURN word;
END
$sqlrs$;
