-- The owner of the function reads the tables of the query.
GRANT USAGE ON SCHEMA {schema} TO {owner};
GRANT SELECT ON TABLE {schema}.{table} TO {owner};
