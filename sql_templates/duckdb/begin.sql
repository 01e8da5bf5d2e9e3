-- A snapshot: temporary tables are allowed, anything else is only read.
BEGIN TRANSACTION READ ONLY;
