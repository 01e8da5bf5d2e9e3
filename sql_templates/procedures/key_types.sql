-- PostgreSQL says of which types the keys are, or all columns of what stands above: the function returns them.
CREATE VIEW sqlrs.key_types AS
{keys};
