"""A statement that runs for minutes on either engine, and a program to be stopped by Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from sqlglot import exp, parse_one

from sqlrs.engines.base import Engine

ONE = exp.select("1")


def slow(engine: Engine) -> exp.Select:
    """A statement that would run for hours, over the engine's own series of numbers."""
    series = "range(3000)" if engine.dialect == "duckdb" else "generate_series(1, 3000)"
    return parse_one(
        f"""
        WITH n AS (SELECT * FROM {series} AS s(x))
        SELECT count(*) FROM n AS a, n AS b, n AS c, n AS d WHERE (a.x + b.x * c.x) % 7 = d.x % 5
        """,
        dialect=engine.dialect,
        into=exp.Select,
    )


PROGRAM = """
import sys
from sqlrs.engines.open import open_engine
from sqlrs.errors import Interrupted
from tests.engines.stops import ONE, slow

engine = open_engine(sys.argv[1])
try:
    with engine.snapshot() as snapshot:
        statement = slow(engine)
        print("running", flush=True)
        snapshot.scalar(statement)
except Interrupted:
    with engine.snapshot() as snapshot:
        print("stopped", snapshot.scalar(ONE), flush=True)
"""


def press_ctrl_c(url: str, after: float) -> tuple[str, float]:
    """What the program prints when SIGINT comes, and how many seconds it lived on."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        return output, time.monotonic() - sent
