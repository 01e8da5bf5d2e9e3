-- A home for the tables of files, next to a database file that is open for reading only.
ATTACH ':memory:' AS sqlrs_files (READ_WRITE);
