-- Spends epsilon of both budgets, or raises an error and spends nothing.
-- setval() survives whatever becomes of the caller's transaction. The two rows are locked while the balance is
-- read and written; the inner block always ends in an error so that its locks go at once, not at the end of the
-- caller's transaction, which the caller could delay. Returns where the write-ahead log must reach.
CREATE OR REPLACE FUNCTION sqlrs.charge(analyst text, dataset text, query text, epsilon numeric)
RETURNS pg_lsn
LANGUAGE plpgsql
AS $sqlrs$
DECLARE
  budget record;
  granted integer := 0;
  refused boolean := false;
BEGIN
  BEGIN
    -- The analyst's row always comes before the dataset's: two charges cannot deadlock.
    FOR budget IN
      SELECT one.kind, one.cap, one.spent
      FROM sqlrs.budgets AS one
      WHERE (one.kind = 'analyst' AND one.name = charge.analyst)
        OR (one.kind = 'dataset' AND one.name = charge.dataset)
      ORDER BY one.kind
      FOR UPDATE
    LOOP
      granted := granted + 1;
      refused := refused OR pg_sequence_last_value(budget.spent) * 1e-12 + epsilon > budget.cap;
    END LOOP;
    refused := refused OR granted <> 2;
    IF NOT refused THEN
      PERFORM setval(one.spent, (pg_sequence_last_value(one.spent) + epsilon * 1e12)::bigint)
      FROM sqlrs.budgets AS one
      WHERE (one.kind = 'analyst' AND one.name = charge.analyst)
        OR (one.kind = 'dataset' AND one.name = charge.dataset);
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'RS000';
  EXCEPTION
    WHEN SQLSTATE 'RS000' THEN
      NULL;
  END;
  IF refused THEN
    RAISE EXCEPTION 'the release costs epsilon %, but the budgets have less left', trim_scale(epsilon)
    USING
      ERRCODE = '53400',
      HINT = 'see SELECT * FROM sqlrs.budget(), ask for less, or ask the data owner for more';
  END IF;
  -- The server's log keeps what a rollback takes out of the journal.
  RAISE LOG 'sqlrs: % spent epsilon % of dataset % on %', analyst, trim_scale(epsilon), dataset, query;
  RETURN pg_current_wal_insert_lsn();
END
$sqlrs$;
