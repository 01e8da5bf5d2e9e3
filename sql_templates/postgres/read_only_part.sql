-- Opens a read-only part of a transaction that may create temporary tables.
SAVEPOINT sqlrs_read_only;
SET LOCAL transaction_read_only = on
