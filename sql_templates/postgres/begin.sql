-- A snapshot: count and residuals see one state of the data and write nothing.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
