-- A private count. The order is that of every release: refuse, repeat, charge, measure in one snapshot, add noise,
-- record.
CREATE OR REPLACE FUNCTION sqlrs.{function}({takes})
RETURNS TABLE (answer numeric, cost numeric, mechanism text)
{guards}
AS $sqlrs$
DECLARE
  asked CONSTANT numeric := epsilon;
  caller CONSTANT text := session_user;
  this_dataset CONSTANT text := {dataset};
  this_query CONSTANT text := {query}{written};
  this_noise CONSTANT text := {mechanism};
  facts CONSTANT jsonb := {facts};
  changed text;
  ratio numeric;
  charged record;
  measured numeric[];
  sensitivity record;
  vector numeric[];
  failed boolean := false;
BEGIN
  PERFORM sqlrs.check_call({edition}, asked, {least_epsilon});
  -- An older snapshot may show rows that the catalog of today reads differently; and at the level SERIALIZABLE the
  -- server shows which rows a transaction has read.
  IF (current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')) IS NOT TRUE THEN
    RAISE EXCEPTION 'a private count is asked at the isolation level READ COMMITTED'
    USING ERRCODE = '25000', HINT = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED at its beginning';
  END IF;
{check_arguments}  mechanism := this_noise;
  IF {repeats} THEN
    SELECT release.answer INTO answer
    FROM sqlrs.releases AS release
    WHERE release.analyst = caller
      AND release.dataset = this_dataset
      AND release.query = this_query
      AND release.mechanism = this_noise
      AND release.epsilon = asked
    ORDER BY release.ticket
    LIMIT 1;
    IF FOUND THEN
      cost := 0;
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;
  changed := sqlrs.changed(facts);
  IF (changed = '') IS NOT TRUE THEN
    RAISE EXCEPTION '% has changed since the function was installed', changed
    USING ERRCODE = '55000', HINT = 'nothing was charged; the data owner installs the function again: sqlrs install';
  END IF;
  charged := sqlrs.spend(caller, this_dataset, {name}, asked);
  -- From here on every failure is one error, raised at one place, whatever the data did.
  BEGIN
{prepared}    -- The count, then the greatest numbers of results that the bound needs: one statement, one snapshot, and in it
    -- the catalog once more.
    EXECUTE $measure$
SELECT found.numbers, sqlrs.changed({facts_at})
FROM (
{measure}
) AS found (numbers)
    $measure$ INTO STRICT measured, changed USING {arguments}facts{tried};
    IF (changed = '') IS NOT TRUE THEN
      RAISE EXCEPTION 'a table has changed since the charge';
    END IF;
{noisy}    INSERT INTO sqlrs.releases (
      at, analyst, dataset, query, mechanism, epsilon, answer, analyst_spent, dataset_spent
    )
    VALUES (
      transaction_timestamp(), caller, this_dataset, this_query, this_noise, asked, answer,
      charged.analyst_spent, charged.dataset_spent
    );
    PERFORM sqlrs.await_durable(charged.place);
    -- An installation may have replaced functions since the first look.
    PERFORM sqlrs.check_call({edition}, asked, {least_epsilon});
  EXCEPTION
    WHEN OTHERS OR query_canceled OR assert_failure THEN
      failed := true;
      RAISE LOG 'sqlrs: a release of % failed with SQLSTATE %', {name}, SQLSTATE;
  END;
  IF failed THEN
    RAISE EXCEPTION 'the release could not be completed; its budget stays spent'
    USING
      ERRCODE = '58000',
      HINT = 'the database failed, ran out of time or memory, or the query divides by zero, overflows '
        'or casts a value that does not fit; the data owner can find out which';
  END IF;
  cost := asked;
  RETURN NEXT;
END
$sqlrs$;
