#!/bin/sh
# The proxy. At the first start the analyst gets an account and a budget.
set -eu
config=/etc/sqlrs/serve.toml
if [ ! -f /state/users.toml ]; then
  sqlrs budget grant 5 --analyst ada --config "$config"
  sqlrs budget grant 10 --dataset demo --config "$config"
  printf '%s\n' "$ANALYST_PASSWORD" | sqlrs user add ada --config "$config"
fi
exec sqlrs serve --config "$config"
