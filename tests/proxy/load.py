"""Many analysts at once against a proxy process: what each was told, and how long it took.

``python -m tests.proxy.load --seconds 60 --connections 200`` prints a report.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy import add_user
from tests.proxy.books import Received, check_books

asyncpg = pytest.importorskip("asyncpg")

PASSWORD = "a password for load"
EPSILON = Decimal("0.1")
_PORT = re.compile(r"listening on .*:(\d+),")
_CONFIGURATION = """
[data]
{data}
ledger = "{ledger}"

[proxy]
port = {port}
status_port = {status_port}
state_directory = "state"

[proxy.limits]
statements_per_second = 10000
statement_burst = 10000

[proxy.default]
epsilon = "{epsilon}"
"""


@dataclass
class Told:
    """What the clients were told, and how long it took: fresh, repeated, catalog or the error."""

    received: list[Received] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def charged(self) -> Counter[str]:
        """How many answers each analyst paid for."""
        return Counter(answer.analyst for answer in self.received if answer.epsilon)

    def summary(self, kind: str) -> dict[str, float]:
        """How many there were, and milliseconds at the median and at the 99th percentile."""
        times = sorted(self.seconds[kind])
        middle, late = (times[min(len(times) - 1, int(p * len(times)))] for p in (0.5, 0.99))
        return {"n": len(times), "p50": round(1000 * middle, 1), "p99": round(1000 * late, 1)}


class ProxyProcess:
    """``sqlrs serve`` in a process of its own, on one folder, started as often as needed."""

    def __init__(
        self,
        folder: Path,
        data: str,
        analysts: list[str],
        budget: str,
        ledger: str | None = None,
    ) -> None:
        self.folder = folder
        self.analysts = analysts
        self.port = 0
        self.status_port = _free_port()
        self._data = data
        self._process: subprocess.Popen[str] | None = None
        self._books = ledger or f"sqlite:///{folder}/budget.db"
        self.ledger = StoreLedger(self._books)
        self.ledger.grant(epsilon=1000, dataset="data")
        for name in analysts:
            add_user(folder / "users.toml", name, PASSWORD)
            self.ledger.grant(epsilon=budget, analyst=name)

    @property
    def process(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        config = self.folder / "sqlrs.toml"
        config.write_text(
            _CONFIGURATION.format(
                data=self._data,
                ledger=self._books,
                port=self.port,
                status_port=self.status_port,
                epsilon=EPSILON,
            )
        )
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from sqlrs.cli import main; main()",
                "serve",
                "--config",
                config,
            ],
            stdout=subprocess.PIPE,
            stderr=(self.folder / "events.log").open("a"),
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = _PORT.match(line)
        assert match is not None, (self.folder / "events.log").read_text()[-2000:]
        self.port = int(match[1])

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(60)

    def memory(self) -> int:
        """Resident bytes of the proxy itself."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def dsn(self, analyst: str) -> str:
        return (
            f"host=127.0.0.1 port={self.port} user={analyst} password='{PASSWORD}'"
            " dbname=sqlrs sslmode=require connect_timeout=20"
        )

    def status(self, path: str) -> tuple[int, str]:
        """What /healthz or /metrics says."""
        try:
            with urlopen(f"http://127.0.0.1:{self.status_port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as answer:
            return answer.code, answer.read().decode()

    async def connect(self, analyst: str) -> Any:
        context = ssl.create_default_context(cafile=str(self.folder / "state" / "server.crt"))
        return await asyncpg.connect(
            host="localhost",
            port=self.port,
            user=analyst,
            password=PASSWORD,
            database="sqlrs",
            ssl=context,
            timeout=60,
        )


@contextmanager
def proxy_process(
    folder: Path, data: str, analysts: list[str], budget: str, ledger: str | None = None
) -> Iterator[ProxyProcess]:
    """A started proxy, stopped at the end; its books are a file in the folder if not said."""
    running = ProxyProcess(folder, data, analysts, budget, ledger)
    running.start()
    try:
        yield running
    finally:
        running.kill(signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def graph_file(folder: Path) -> str:
    """A small graph, as the [data] section that names it."""
    chance = random.Random(3)
    edges = {(chance.randrange(300), chance.randrange(300)) for _ in range(2000)}
    (folder / "graph.txt").write_text("".join(f"{a}\t{b}\n" for a, b in sorted(edges)))
    return 'tables = { edge = "graph.txt" }'


async def client(
    proxy: ProxyProcess, analyst: str, seed: int, until: float, told: Told, gate: asyncio.Semaphore
) -> None:
    """One connection: cheap counts, repeats, catalog queries and refusals for a while."""
    chance = random.Random(seed)
    async with gate:
        connection = await proxy.connect(analyst)
    notices: list[str] = []
    connection.add_log_listener(lambda _, message: notices.append(message.message))
    statements = {
        "count": "SELECT count(*) FROM edge WHERE src = $1 AND dst <> $2",
        "join": "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.src = $1",
        "few": "SELECT count(*) FROM edge WHERE dst = $1",
        "catalog": "SELECT count(*) FROM pg_class WHERE relname = $1",
        "refused": "SELECT src FROM edge WHERE src = $1",
    }
    try:
        while time.monotonic() < until:
            kind = chance.choices(list(statements), (3, 2, 2, 2, 1))[0]
            values: list[object] = [chance.randrange(5 if kind == "few" else 300)]
            if kind == "count":
                values.append(chance.randrange(20))
            if kind == "catalog":
                values = ["edge"]
            began = time.monotonic()
            end = kind
            try:
                value = await connection.fetchval(statements[kind], *values)
            except asyncpg.PostgresError as problem:
                end = str(problem.sqlstate)
                told.errors[end] += 1
            took = time.monotonic() - began
            if end in ("count", "join", "few"):
                # The driver tells of a notice in the loop's next round.
                await asyncio.sleep(0)
                told.received.append(Received.of(analyst, value, notices.pop()))
                end = "fresh" if told.received[-1].epsilon else "repeated"
            told.seconds.setdefault(end, []).append(took)
            await asyncio.sleep(chance.random() * 0.2)
    finally:
        await connection.close(timeout=10)


async def load(
    proxy: ProxyProcess, connections: int, seconds: float, told: Told | None = None
) -> Told:
    """Keep that many connections busy for that long; what they are told is added to ``told``."""
    told, gate = told or Told(), asyncio.Semaphore(20)
    until = time.monotonic() + seconds
    await asyncio.gather(
        *(
            client(proxy, proxy.analysts[n % len(proxy.analysts)], n, until, told, gate)
            for n in range(connections)
        )
    )
    return told


async def load_and_watch(proxy: ProxyProcess, connections: int, seconds: float) -> Any:
    """The load, and the proxy's memory in between, in MB."""
    watched: list[int] = []
    running = asyncio.create_task(load(proxy, connections, seconds))
    while not running.done():
        watched.append(proxy.memory() >> 20)
        await asyncio.wait({running}, timeout=seconds / 6)
    return running.result(), watched


def main() -> None:
    """Print a report as JSON."""
    from tests.proxy.overhead import overhead

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--analysts", type=int, default=20)
    parser.add_argument("--budget", default="10")
    parser.add_argument("--samples", type=int, default=100)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sqlrs-load-"))
    analysts = [f"analyst{n}" for n in range(given.analysts)]
    with proxy_process(folder, graph_file(folder), [*analysts, "alone"], given.budget) as proxy:
        proxy.ledger.grant(epsilon=2 * given.samples * EPSILON, analyst="alone")
        alone = overhead(proxy, "alone", given.samples)
        proxy.analysts = analysts
        told, memory = asyncio.run(load_and_watch(proxy, given.connections, given.seconds))
        check_books(proxy.ledger, told.received)
        report = {
            "charged": told.charged.total(),
            "repeated": len(told.received) - told.charged.total(),
            "errors": dict(told.errors),
            "memory_mb": memory,
            "milliseconds": {kind: told.summary(kind) for kind in told.seconds},
            "milliseconds_alone": {kind: alone.summary(kind) for kind in alone.seconds},
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
