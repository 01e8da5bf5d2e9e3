"""Load and faults on a proxy process: every answer is in the ledger, and service resumes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from sqlrs.ledger.base import RELEASED
from tests.proxy.books import Received, check_books
from tests.proxy.load import (
    EPSILON,
    ProxyProcess,
    Told,
    client,
    graph_file,
    load,
    proxy_process,
)
from tests.support.postgres_server import PostgresServer

ANALYSTS = [f"analyst{n}" for n in range(20)]


def released(proxy: ProxyProcess) -> Counter[str]:
    """How many answers of each analyst the ledger holds."""
    lines = proxy.ledger.history()
    return Counter(line.charge.analyst for line in lines if line.outcome == RELEASED)


def shadows() -> set[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return {line for line in listed.stdout.splitlines() if "sqlrs-shadow-" in line}


def test_a_little_load_is_accounted_for(tmp_path: Path) -> None:
    with proxy_process(tmp_path, graph_file(tmp_path), ANALYSTS[:4], "0.5") as proxy:
        told = Told()
        # How much is asked in four seconds is the machine's: a busy one needs more of them.
        for _ in range(10):
            asyncio.run(load(proxy, connections=12, seconds=4, told=told))
            if told.charged.total() < len(told.received) and "53400" in told.errors:
                break
        check_books(proxy.ledger, told.received)
        # Nothing failed, so nothing was paid without an answer.
        assert told.charged == released(proxy)
    assert set(told.errors) == {"0A000", "53400"}
    assert {answer.epsilon for answer in told.received} == {EPSILON, Decimal(0)}


@pytest.mark.slow
def test_a_minute_of_two_hundred_connections(tmp_path: Path) -> None:
    with proxy_process(tmp_path, graph_file(tmp_path), ANALYSTS, "2") as proxy:
        warming = asyncio.run(load(proxy, connections=200, seconds=10))
        warm = proxy.memory()
        told = asyncio.run(load(proxy, connections=200, seconds=60))
        grown = proxy.memory() - warm
        check_books(proxy.ledger, warming.received + told.received)
        assert warming.charged + told.charged == released(proxy)
    assert set(told.errors) <= {"0A000", "53400"}
    assert grown < 40 * 2**20


@pytest.mark.slow
def test_killed_proxies_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, graph_file(tmp_path), ANALYSTS, "50")
    received: list[Received] = []
    others = shadows()
    for _ in range(3):
        proxy.start()
        received += asyncio.run(_load_and_kill(proxy)).received
        check_books(proxy.ledger, received)
    proxy.start()
    told = asyncio.run(load(proxy, connections=10, seconds=2))
    assert told.charged.total() > 0
    check_books(proxy.ledger, received + told.received)
    proxy.kill(signal.SIGTERM)
    deadline = time.monotonic() + 10
    while shadows() - others and time.monotonic() < deadline:
        time.sleep(0.2)
    assert shadows() - others == set()


@pytest.mark.slow
def test_counts_resume_after_the_data_server_crashed(tmp_path: Path) -> None:
    with PostgresServer() as server, server.database() as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("CREATE TABLE edge (src bigint, dst bigint, PRIMARY KEY (src, dst))")
            owner.execute("INSERT INTO edge SELECT g % 300, g FROM generate_series(1, 2000) g")
        with proxy_process(tmp_path, f'db = "{url}"', ANALYSTS, "50") as proxy:
            told = asyncio.run(_load_and_crash(proxy, url))
            after = asyncio.run(load(proxy, connections=20, seconds=3))
            check_books(proxy.ledger, told.received + after.received)
            assert told.charged + after.charged == released(proxy)
    assert after.charged.total() > 0
    assert set(after.errors) <= {"0A000"}


async def _load_and_kill(proxy: ProxyProcess) -> Told:
    """Kill the proxy in the middle of the load; clients fail, what they were told stays."""
    told = Told()
    gate = asyncio.Semaphore(20)
    until = time.monotonic() + 30
    tasks = [
        asyncio.create_task(client(proxy, ANALYSTS[n % 20], n, until, told, gate))
        for n in range(40)
    ]
    await asyncio.sleep(5)
    proxy.kill()
    await asyncio.gather(*tasks, return_exceptions=True)
    return told


async def _load_and_crash(proxy: ProxyProcess, url: str) -> Told:
    """Kill backends of the data server during the load: it restarts and drops all connections."""
    running = asyncio.create_task(load(proxy, connections=20, seconds=8))
    for _ in range(3):
        await asyncio.sleep(2)
        with psycopg.connect(url, autocommit=True) as owner:
            rows = owner.execute(
                "SELECT pid FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchall()
        if rows:
            os.kill(rows[0][0], signal.SIGKILL)
    return await running
