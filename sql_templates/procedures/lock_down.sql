-- Nobody but the owner has any right on anything in the schema, until a grant says so.
REVOKE ALL ON SCHEMA sqlrs FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA sqlrs FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA sqlrs FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA sqlrs FROM PUBLIC;
