-- Spends epsilon of both budgets, or raises an error and spends nothing. Only a proven "enough" goes on: a row that is
-- missing, a counter that is not certain, a NULL and a NaN refuse.
-- setval() survives whatever becomes of the caller's transaction. The two rows are locked while the balance is
-- read and written; the inner block always ends in an error so that its locks go at once, not at the end of the
-- caller's transaction, which the caller could delay. Returns where the write-ahead log must reach, and what is spent.
CREATE OR REPLACE FUNCTION sqlrs.spend(
  analyst text,
  dataset text,
  query text,
  epsilon numeric,
  OUT place pg_lsn,
  OUT analyst_spent bigint,
  OUT dataset_spent bigint
)
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  budget record;
  units CONSTANT bigint := (epsilon * 1e12)::bigint;
  before bigint;
  kinds text[] := ARRAY[]::text[];
  counters regclass[] := ARRAY[]::regclass[];
  after bigint[] := ARRAY[]::bigint[];
  uncertain text;
  short text;
  spent boolean := false;
BEGIN
  BEGIN
    -- The analyst's row always comes before the dataset's: two charges cannot deadlock.
    FOR budget IN
      SELECT one.kind, one.name, one.cap, one.spent
      FROM sqlrs.budgets AS one
      WHERE (one.kind = 'analyst' AND one.name = spend.analyst)
        OR (one.kind = 'dataset' AND one.name = spend.dataset)
      ORDER BY one.kind
      FOR UPDATE
    LOOP
      before := sqlrs.spent_units(budget.kind, budget.name, budget.spent);
      kinds := kinds || budget.kind;
      counters := counters || budget.spent;
      after := after || (before + units);
      IF before IS NULL THEN
        uncertain := coalesce(uncertain, budget.kind);
      ELSIF (units > 0 AND (before + units) * 1e-12 <= budget.cap AND budget.cap <= 1000000) IS NOT TRUE THEN
        short := coalesce(short, budget.kind);
      END IF;
    END LOOP;
    IF (kinds = ARRAY['analyst', 'dataset']) IS NOT TRUE THEN
      short := CASE WHEN kinds[1] = 'analyst' THEN 'dataset' ELSE 'analyst' END;
    END IF;
    IF short IS NULL AND uncertain IS NULL AND counters[1] <> counters[2] AND array_position(after, NULL) IS NULL THEN
      PERFORM setval(counters[1], after[1]);
      PERFORM setval(counters[2], after[2]);
      spent := pg_sequence_last_value(counters[1]) = after[1] AND pg_sequence_last_value(counters[2]) = after[2];
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'RS000';
  EXCEPTION
    WHEN SQLSTATE 'RS000' THEN
      NULL;
  END;
  IF short IS NOT NULL AND uncertain IS NULL THEN
    RAISE EXCEPTION 'the release costs epsilon %, but the budget of the % has less left', trim_scale(epsilon), short
    USING
      ERRCODE = '53400',
      HINT = format(
        'see SELECT * FROM sqlrs.budget() and ask for less, or let the data owner raise the cap (the total over all '
        'time): SELECT sqlrs.grant_budget(%L, %L, …)',
        short,
        CASE short WHEN 'analyst' THEN analyst ELSE dataset END
      );
  END IF;
  IF spent IS NOT TRUE THEN
    RAISE EXCEPTION 'it is not certain what is spent of the budget of the %', coalesce(uncertain, 'dataset')
    USING
      ERRCODE = '55000',
      HINT = format(
        'its counter was lost or reset; the data owner says what is spent: SELECT sqlrs.restore_spent(%L, %L, …)',
        coalesce(uncertain, 'dataset'),
        CASE uncertain WHEN 'analyst' THEN analyst ELSE dataset END
      );
  END IF;
  -- The server's log keeps what a rollback takes out of the journal.
  RAISE LOG 'sqlrs: % spent epsilon % of dataset % on %', analyst, trim_scale(epsilon), dataset, query;
  place := pg_current_wal_insert_lsn();
  analyst_spent := after[1];
  dataset_spent := after[2];
END
$sqlrs$;
