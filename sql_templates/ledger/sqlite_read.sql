-- One snapshot for the version and for what is read then.
BEGIN
