"""``sqlrs``: the commands in one list, and the place where errors become exit codes."""

from __future__ import annotations

import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from sqlrs import __version__
from sqlrs.cli import budget, console, counting, owner, procedures, proxy, querying, tables
from sqlrs.cli.signals import exit_code, treat_as_ctrl_c
from sqlrs.errors import Interrupted, SqlrsError, UsageError

app = typer.Typer(
    name="sqlrs",
    help="Answer counting queries with joins under differential privacy, inside the database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("count")(counting.count)
app.command("query")(querying.query)
app.command("price")(counting.price)
app.command("graph")(counting.graph)
app.command("demo")(counting.demo)
app.command("explain")(owner.explain)
app.command("sql")(owner.sql)
app.command("sensitivity")(owner.sensitivity)
app.command("tables")(tables.tables)
app.command("from-smartnoise")(owner.from_smartnoise)
app.command("serve")(proxy.serve)
app.command("console")(console.console)
app.command("check-config")(proxy.check_config)
app.command("install")(procedures.install)
app.command("installed")(procedures.installed)
app.command("uninstall")(procedures.uninstall)
app.command("hide-statistics")(procedures.hide_statistics)
app.add_typer(budget.app, name="budget")
app.add_typer(proxy.users_app, name="user")


# The package that is missing -> the extra that brings it.
_EXTRAS = {
    "psycopg": "postgres",
    "cryptography": "proxy",
    "z3": "smt",
    "starlette": "console",
    "uvicorn": "console",
    "jinja2": "console",
    "markupsafe": "console",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sqlrs {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Answer counting queries with joins under differential privacy, inside the database."""


def main() -> None:
    """Run the command line and exit with its code; whatever happens, nobody reads a traceback."""
    treat_as_ctrl_c()
    try:
        _prepare_output()
        try:
            app(standalone_mode=True)
        finally:
            # An answer that cannot be written is an error of this program, not of its shutdown.
            if sys.stdout is not None:
                sys.stdout.flush()
    except SystemExit:
        # The parser of the command line ends in this way, also where a signal stopped it.
        if exit_code() is None:
            raise
        _fail(Interrupted("stopped"))
    except KeyboardInterrupt:
        _fail(Interrupted("stopped"))
    except Exception as problem:
        if exit_code() is not None and not isinstance(problem, SqlrsError):
            # Drivers turn an interruption into what they like.
            _fail(Interrupted("stopped"))
        _end(problem)


def _end(problem: Exception) -> None:
    match problem:
        case SqlrsError():
            _fail(problem)
        case BrokenPipeError():
            _drop_output()
            sys.exit(1)
        case ModuleNotFoundError():
            _fail(_missing(problem))
        case UnicodeError():
            _fail(UsageError("an argument or a file is not Unicode text"))
        case OSError():
            _drop_output()
            place = f"{problem.filename}: " if problem.filename else ""
            _fail(UsageError(f"{place}{problem.strerror or type(problem).__name__}"))
        case _:
            _fail(_unforeseen(problem))


def _prepare_output() -> None:
    if sys.stdout is None:
        # Before anything is charged for an answer that nobody would see.
        raise UsageError("standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without the letter ε shows \u03b5.
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Let nothing more be written where writing failed; Python flushes at the exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def _missing(error: ModuleNotFoundError) -> SqlrsError:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return _unforeseen(error)
    return UsageError(
        f"this needs the Python package {package}", hint=f"pip install 'sqlrs[{extra}]'"
    )


def _unforeseen(error: Exception) -> SqlrsError:
    # The error's own text could quote the data.
    place = traceback.extract_tb(error.__traceback__)[-1]
    return SqlrsError(
        f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}",
        code="internal",
        hint="this is a mistake in sqlrs: please report it, with the command",
    )


def _fail(error: SqlrsError) -> None:
    if sys.stderr is not None:
        print(f"sqlrs: {error.describe()}", file=sys.stderr)
    sys.exit(exit_code() or error.exit_code)
