#!/bin/sh
# Installs the demo's function and hides the server's statistics; running it again changes nothing. PGPASSWORD holds
# the owner's password.
set -eu
sqlrs hide-statistics --db "$OWNER_URL"
exec sqlrs install - --name count_triangles --db "$OWNER_URL" --dataset demo \
  --grant ada --budget 5 --dataset-budget 10 < "${QUERY_FILE:-/etc/sqlrs/triangles.sql}"
