-- Where unqualified names are looked up, and the collation of text that declares none.
SELECT current_database(), current_schema(), current_schemas(false), current_setting('default_collation');
