"""Start-up: processor time of a small count and of its libraries, and the first answer of a proxy.

    python -m benchmarks.start [--runs 25] [--proxies 4] [--other FOLDER]

Processes run in turns, with compiled bytecode. ``--other`` adds the count by the sources in another
folder. Of each fresh proxy the first count is timed, and others of its kind behind it.
Data: three rows that it writes itself.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from benchmarks.common import write_results

CORE = "import _duckdb; _duckdb.connect().execute('SELECT 1').fetchall(); "
PARSED = CORE + "import sqlglot; sqlglot.parse_one('SELECT 1', dialect='duckdb').sql('duckdb'); "
COUNT = ("-m", "sqlrs", "count", "SELECT count(*) FROM visit", "--table", "visit=visit.csv")
JOIN = "SELECT count(*) FROM visit a JOIN visit b ON a.day = b.patient"
CASES: dict[str, tuple[str, ...]] = {
    "`python -c pass`": ("-c", "pass"),
    "import of duckdb, a connection, one statement": (
        "-c",
        "import duckdb; duckdb.connect().execute('SELECT 1').fetchall()",
    ),
    "the same with DuckDB's core": ("-c", CORE),
    "and sqlglot, one statement parsed and written": ("-c", PARSED),
    "and typer": ("-c", PARSED + "import typer"),
    "`sqlrs count`, one table": (*COUNT, "--epsilon", "1"),
    "`sqlrs count`, a join": (*COUNT[:3], JOIN, *COUNT[4:], "--epsilon", "1"),
}
SETTLED = 4.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--proxies", type=int, default=4)
    parser.add_argument("--other", type=Path)
    given = parser.parse_args()
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    cases = {name: (CASES[name], surroundings) for name in CASES}
    if given.other is not None:
        theirs = {**surroundings, "PYTHONPATH": str(given.other.absolute())}
        cases["`sqlrs count`, one table, other sources"] = ((*COUNT, "--epsilon", "1"), theirs)
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        Path(folder, "visit.csv").write_text("patient,day\n1,2\n2,3\n1,4\n", encoding="utf-8")
        least = {name: (9e9, 9e9) for name in cases}
        for _ in range(given.runs):
            for name, (arguments, environment) in cases.items():
                cores, seconds = timed(arguments, environment, folder)
                least[name] = (min(least[name][0], cores), min(least[name][1], seconds))
        firsts = [answered_first(folder, surroundings) for _ in range(given.proxies)]
    floor = least["`python -c pass`"][0]
    lines = ["| process | core s | s | times the interpreter |", "|---|---:|---:|---:|"]
    lines += [
        f"| {name} | {cores:.3f} | {seconds:.3f} | {cores / floor:.0f} |"
        for name, (cores, seconds) in least.items()
    ]
    lines += ["", "| fresh proxy | first count, ms | second | third |", "|---|---:|---:|---:|"]
    lines += [
        f"| {place} | " + " | ".join(f"{one:.0f}" for one in times) + " |"
        for place, times in enumerate(firsts, 1)
    ]
    write_results("start", "\n".join(lines), {"processes": least, "proxies": firsts})


def timed(
    arguments: Sequence[str], environment: dict[str, str], folder: str
) -> tuple[float, float]:
    """Core seconds and seconds of one process."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise RuntimeError(f"{arguments} ended with {status}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begun


def answered_first(folder: str, environment: dict[str, str]) -> list[float]:
    """Milliseconds of the first counts that a fresh proxy answers, each another text."""
    with TemporaryDirectory() as state:
        command = ["-m", "sqlrs", "serve", "--table", "visit=visit.csv", "--user", "alice"]
        server = subprocess.Popen(
            [sys.executable, *command, "--port", "0", "--state", f"{state}/proxy"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdout is not None
        said = ""
        while "listening" not in said and (line := server.stdout.readline()):
            said += line
        port, word = re.search(r":(\d+),", said), re.search(r"password of alice: (\S+)", said)
        assert port is not None and word is not None
        # Who starts a proxy does not ask in the same second.
        time.sleep(SETTLED)
        target = f"host=127.0.0.1 port={port[1]} user=alice dbname=sqlrs sslmode=require"
        with psycopg.connect(target, password=word[1], autocommit=True) as client:
            times = []
            for patient in range(3):
                begun = time.perf_counter()
                client.execute(f"SELECT count(*) FROM visit WHERE patient = {patient}").fetchall()
                times.append(1000 * (time.perf_counter() - begun))
        server.send_signal(signal.SIGTERM)
        server.wait()
    return times


if __name__ == "__main__":
    main()
