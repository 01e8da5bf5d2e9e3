-- Ends the read-only part.
RELEASE SAVEPOINT sqlrs_read_only
