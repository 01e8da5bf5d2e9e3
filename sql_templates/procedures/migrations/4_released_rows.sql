-- Version 4. The rows of a table that was released, keys and numbers as texts, beside its line of the journal, whose
-- answer is the number of rows. A column of the journal would wait for callers who leave a transaction open.
CREATE TABLE sqlrs.released_rows (
  ticket bigint PRIMARY KEY,
  told jsonb NOT NULL
);
