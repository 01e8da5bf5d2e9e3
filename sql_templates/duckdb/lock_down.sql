-- After opening: no access from SQL to files that are not named in allowed_paths, to the network or to extensions,
-- and no way to turn it on again.
SET enable_external_access = false;
SET lock_configuration = true;
