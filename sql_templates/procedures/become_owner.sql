-- What is created from here on belongs to the owner.
SET LOCAL ROLE {owner};
