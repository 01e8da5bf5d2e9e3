"""``sqlrs``: runs the command that is named; errors become exit codes here."""

from __future__ import annotations

import gc
import io
import os
import sys
import traceback
from pathlib import Path

from sqlrs.cli.commands import application
from sqlrs.cli.signals import exit_code, treat_as_ctrl_c
from sqlrs.errors import Interrupted, SqlrsError, UsageError

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
# So many new objects: a small count makes fewer.
_COLLECTED_AFTER = 50_000


def main() -> None:
    """Run the command line and exit with its code; whatever happens, nobody reads a traceback."""
    treat_as_ctrl_c()
    try:
        _prepare_output()
        try:
            app = application(sys.argv[1:])
            # What is imported now is needed to the end: no collection need look at it, nor often
            # at the much that the drivers bring along, which is needed as long.
            gc.freeze()
            gc.set_threshold(_COLLECTED_AFTER)
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
