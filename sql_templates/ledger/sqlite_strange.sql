-- What does something else than keep rows.
SELECT name || ' is a ' || type FROM sqlite_master WHERE type IN ('trigger', 'view') LIMIT 1
