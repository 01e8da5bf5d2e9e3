-- PostgreSQL reads the statement once now, without running it: a parameter of a type that does not fit is told here, and
-- so is a name that it does not find.
PREPARE sqlrs_check{types} AS
{measure};
DEALLOCATE sqlrs_check;
