-- A committed reservation must survive a power cut, or the budget would come back.
PRAGMA synchronous = EXTRA
