"""Runs the command line inside a child process, with any streams, packages and environment."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

import sqlrs.cli

# Loaded once, and not again in every child.
import sqlrs.engines.duckdb
import sqlrs.ledger.store
import sqlrs.procedures.install
import sqlrs.proxy
from sqlrs.database import Database


@dataclass(frozen=True)
class Call:
    """A command with what is around it. ``broken``: counting fails by a mistake of our own."""

    arguments: tuple[str | bytes, ...]
    stdin: bytes | None
    stdout: str
    stderr: str
    missing: tuple[str, ...]
    environment: dict[str, str] | None
    broken: bool


def end_with_code_of(folder: str, call: Call) -> NoReturn:
    """Run the call in a folder and leave the process with its exit code."""
    os.chdir(folder)
    code = 99
    try:
        code = _code_of(call)
    finally:
        os._exit(code)


def _code_of(call: Call) -> int:
    signal.alarm(60)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if call.broken:
        setattr(Database, "count", _broken)  # noqa: B010
    if call.environment is not None:
        os.environ.clear()
        os.environ.update(call.environment)
    for name in call.missing:
        for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            del sys.modules[module]
        for module in [m for m in sys.modules if m.startswith(("sqlrs.engines", "sqlrs.proc"))]:
            del sys.modules[module]
        for module in [m for m in sys.modules if m.startswith("sqlrs.proxy")]:
            del sys.modules[module]
        sys.modules[name] = None  # type: ignore[assignment]
    sys.stdin = None
    if call.stdin is not None:
        Path("in").write_bytes(call.stdin)
        sys.stdin = open("in", encoding="utf-8")  # noqa: SIM115
    sys.stdout = _stream(1, call.stdout, "out")
    sys.stderr = _stream(2, call.stderr, "err")
    sys.argv = ["sqlrs", *(os.fsdecode(argument) for argument in call.arguments)]
    try:
        sqlrs.cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # What Python does at its own exit; a failure there is a message of Python's.
                stream.flush()
        return code
    except BaseException:
        traceback.print_exc()
        if sys.stderr is not None:
            sys.stderr.flush()
    return 98


def _stream(number: int, kind: str, name: str) -> TextIO | None:
    if kind == "closed":
        os.close(number)
        return None
    if kind == "pipe":
        reader, target = os.pipe()
        os.close(reader)
    elif kind == "full":
        target = os.open("/dev/full", os.O_WRONLY)
    else:
        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(target, number)
    encoding = "ascii" if kind == "ascii" else "utf-8"
    errors = "backslashreplace" if number == 2 else "strict"
    return open(number, "w", encoding=encoding, errors=errors, closefd=False)


def _broken(*_: object, **__: object) -> None:
    raise KeyError("4815162342")
