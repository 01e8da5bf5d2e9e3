-- After loading: no file, network or extension access from SQL, and no way to turn it on again.
SET enable_external_access = false;
SET lock_configuration = true;
