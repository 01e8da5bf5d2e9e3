#!/bin/sh
# Installs the demo's function; running it again changes nothing. PGPASSWORD holds the owner's password.
set -eu
exec sqlrs install - --name count_triangles --db "$OWNER_URL" --dataset demo \
  --grant ada --budget 5 --dataset-budget 10 < "${QUERY_FILE:-/etc/sqlrs/triangles.sql}"
