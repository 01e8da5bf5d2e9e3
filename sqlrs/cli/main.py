"""``sqlrs``: the commands in one list, and the place where errors become exit codes."""

from __future__ import annotations

import sys

import typer

from sqlrs.cli import budget, counting, owner, procedures, proxy
from sqlrs.errors import Interrupted, SqlrsError

app = typer.Typer(
    name="sqlrs",
    help="Answer counting queries with joins under differential privacy, inside the database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("count")(counting.count)
app.command("graph")(counting.graph)
app.command("demo")(counting.demo)
app.command("explain")(owner.explain)
app.command("sql")(owner.sql)
app.command("sensitivity")(owner.sensitivity)
app.command("serve")(proxy.serve)
app.command("check-config")(proxy.check_config)
app.command("install")(procedures.install)
app.command("installed")(procedures.installed)
app.command("uninstall")(procedures.uninstall)
app.add_typer(budget.app, name="budget")
app.add_typer(proxy.users_app, name="user")


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        app(standalone_mode=True)
    except SqlrsError as error:
        _fail(error)
    except KeyboardInterrupt:
        _fail(Interrupted("stopped"))


def _fail(error: SqlrsError) -> None:
    print(f"sqlrs: {error.describe()}", file=sys.stderr)
    sys.exit(error.exit_code)
