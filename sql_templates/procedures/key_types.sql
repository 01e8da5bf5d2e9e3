-- PostgreSQL says of which types the keys are: the function returns them as they are.
CREATE VIEW sqlrs.key_types AS
{keys};
