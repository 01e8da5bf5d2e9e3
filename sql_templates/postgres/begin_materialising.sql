-- A snapshot with temporary tables, which PostgreSQL creates in no READ ONLY transaction.
BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE
