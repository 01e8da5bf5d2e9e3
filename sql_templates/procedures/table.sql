-- Private numbers of public groups. The order is that of every release: refuse, repeat, charge, measure in one
-- snapshot, add noise, record. It knows the columns that it returns by their places: their names are the analyst's.
CREATE OR REPLACE FUNCTION sqlrs.{function}({takes})
RETURNS TABLE ({returns})
{guards}
AS $sqlrs$
#variable_conflict use_column
DECLARE
{columns}
  asked CONSTANT numeric := epsilon;
  caller CONSTANT text := session_user;
  this_dataset CONSTANT text := {dataset};
  this_query CONSTANT text := {query}{written};
  this_noise CONSTANT text := {mechanism};
  this_unit CONSTANT text := {unit};
  facts CONSTANT jsonb := {facts};
  changed text;
  charged record;
  group_count numeric;
  measured jsonb;
  bound_values numeric[];
  bounds numeric[];
  own_epsilon numeric;
  ratio numeric;
  sensitivity record;
  places integer;
  total numeric;
  total_places integer;
  noises numeric[] := ARRAY[]::numeric[];
  told_rows jsonb;
  told_clippings jsonb;
  clipped record;
  paid numeric := 0;
  this_ticket bigint;
  one jsonb;
  key_types text[];
  failed boolean := false;
BEGIN
  PERFORM sqlrs.check_call({edition}, asked, {least_epsilon});
  -- An older snapshot may show rows that the catalog of today reads differently; and at the level SERIALIZABLE the
  -- server shows which rows a transaction has read.
  IF (current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')) IS NOT TRUE THEN
    RAISE EXCEPTION 'a private count is asked at the isolation level READ COMMITTED'
    USING ERRCODE = '25000', HINT = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED at its beginning';
  END IF;
{check_arguments}  IF {repeats} THEN
    SELECT released.told, protected.clippings INTO told_rows, told_clippings
    FROM sqlrs.releases AS release
    JOIN sqlrs.released_rows AS released ON released.ticket = release.ticket
    LEFT JOIN sqlrs.released_units AS protected ON protected.ticket = release.ticket
    WHERE release.analyst = caller
      AND release.dataset = this_dataset
      AND release.query = this_query
      AND release.mechanism = this_noise
      AND release.epsilon = asked
      AND coalesce(protected.unit, 'row') = this_unit
    ORDER BY release.ticket
    LIMIT 1;
  END IF;
  IF told_rows IS NULL THEN
    changed := sqlrs.changed(facts);
    IF (changed = '') IS NOT TRUE THEN
      RAISE EXCEPTION '% has changed since the function was installed', changed
      USING ERRCODE = '55000', HINT = 'nothing was charged; the data owner installs the function again: sqlrs install';
    END IF;
    -- The groups are public: too many of them cost nothing.
    EXECUTE $groups${groups}$groups$ INTO STRICT group_count;
    IF (group_count <= {max_groups}) IS NOT TRUE THEN
      RAISE EXCEPTION 'there are more than % groups', {max_groups}
      USING ERRCODE = '54000', HINT = 'nothing was charged; the data owner raises max_groups or narrows the keys';
    END IF;
{check_work}    charged := sqlrs.spend(caller, this_dataset, {name}, asked);
    -- From here on every failure is one error, raised at one place, whatever the data did.
    BEGIN
      -- All numbers and what the bounds need: one statement, one snapshot, and in it the catalog once more.
      EXECUTE $measure$
SELECT
  (
    {measure}
  ),
  ARRAY[{bound_values}]::numeric[],
  sqlrs.changed({facts_at})
    $measure$ INTO STRICT measured, bound_values, changed USING {arguments}facts;
      IF (changed = '') IS NOT TRUE OR (jsonb_array_length({rows}) <= {max_groups}) IS NOT TRUE THEN
        RAISE EXCEPTION 'a table has changed since the charge';
      END IF;
{noisy}      INSERT INTO sqlrs.releases (
        at, analyst, dataset, query, mechanism, epsilon, answer, analyst_spent, dataset_spent
      )
      VALUES (
        transaction_timestamp(), caller, this_dataset, this_query, this_noise, asked, {journaled},
        charged.analyst_spent, charged.dataset_spent
      )
      RETURNING releases.ticket INTO STRICT this_ticket;
      INSERT INTO sqlrs.released_rows (ticket, told) VALUES (this_ticket, told_rows);
      IF this_unit <> 'row' THEN
        INSERT INTO sqlrs.released_units (ticket, unit, clippings) VALUES (this_ticket, this_unit, told_clippings);
      END IF;
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
    paid := asked;
  END IF;
{tell}{deliver}END
$sqlrs$;
