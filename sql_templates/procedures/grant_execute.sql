-- A role that may call the function and look at its own budget and history.
GRANT USAGE ON SCHEMA sqlrs TO {role};
GRANT EXECUTE ON FUNCTION sqlrs.{function}, sqlrs.budget(), sqlrs.history() TO {role};
