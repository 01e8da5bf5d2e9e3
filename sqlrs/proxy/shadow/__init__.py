"""The shadow: a PostgreSQL server with the schema and not one row, and how to talk to it."""
