#!/bin/sh
# The analyst may log in and nothing else; the reader is who the proxy reads the graph as. psql takes the passwords
# from the environment: on its command line every user of the machine could see them. The other databases show the
# counters of the whole server, so nobody else connects to them.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\getenv analyst ANALYST_PASSWORD
\getenv reader READER_PASSWORD
CREATE ROLE ada LOGIN PASSWORD :'analyst';
CREATE ROLE reader LOGIN PASSWORD :'reader';
GRANT SELECT ON edge TO reader;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC;
SQL
