-- Removes everything, the ledger too: all budgets are forgotten.
DROP SCHEMA IF EXISTS sqlrs CASCADE;
