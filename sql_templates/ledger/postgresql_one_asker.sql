-- One request is counted and written after another: those that come at once see each other. Only who may write to the
-- table can take this lock.
LOCK TABLE sqlrs_ledger.sqlrs_requests IN SHARE ROW EXCLUSIVE MODE
