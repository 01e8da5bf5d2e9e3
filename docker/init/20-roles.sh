#!/bin/sh
# The analyst may log in and nothing else; the reader is who the proxy reads the graph as.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --set analyst="$ANALYST_PASSWORD" --set reader="$READER_PASSWORD" <<'SQL'
CREATE ROLE ada LOGIN PASSWORD :'analyst';
CREATE ROLE reader LOGIN PASSWORD :'reader';
GRANT SELECT ON edge TO reader;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
SQL
