-- The write lock comes first, so that what is read cannot change before it is written.
BEGIN IMMEDIATE
