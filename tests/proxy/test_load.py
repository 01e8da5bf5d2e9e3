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
from tests.postgres_server import PostgresServer
from tests.proxy.load import (
    EPSILON,
    ProxyProcess,
    Told,
    client,
    graph_file,
    load,
    proxy_process,
)

ANALYSTS = [f"analyst{n}" for n in range(20)]


def spent_and_released(proxy: ProxyProcess) -> tuple[dict[str, Decimal], Counter[str]]:
    spent = {name: proxy.ledger.budget(analyst=name).spent for name in proxy.analysts}
    released: Counter[str] = Counter()
    for line in proxy.ledger.history():
        released[line.charge.analyst] += line.outcome == RELEASED
    return spent, released


def shadows() -> set[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return {line for line in listed.stdout.splitlines() if "sqlrs-shadow-" in line}


def test_a_little_load_is_accounted_for(tmp_path: Path) -> None:
    with proxy_process(tmp_path, graph_file(tmp_path), ANALYSTS[:4], "0.5") as proxy:
        told = asyncio.run(load(proxy, connections=12, seconds=4))
        spent, released = spent_and_released(proxy)
    _check_books(told, spent, released, cap=Decimal("0.5"))


@pytest.mark.slow
def test_a_minute_of_two_hundred_connections(tmp_path: Path) -> None:
    with proxy_process(tmp_path, graph_file(tmp_path), ANALYSTS, "2") as proxy:
        asyncio.run(load(proxy, connections=200, seconds=10))
        warm = proxy.memory()
        first = spent_and_released(proxy)
        told = asyncio.run(load(proxy, connections=200, seconds=60))
        grown = proxy.memory() - warm
        spent, released = spent_and_released(proxy)
    new = Counter({name: released[name] - first[1][name] for name in ANALYSTS})
    assert told.charged == +new
    assert all(spent[name] == released[name] * EPSILON for name in ANALYSTS)
    assert max(spent.values()) <= Decimal(2)
    assert set(told.errors) <= {"0A000", "53400"}
    assert grown < 40 * 2**20


@pytest.mark.slow
def test_killed_proxies_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, graph_file(tmp_path), ANALYSTS, "50")
    total: Counter[str] = Counter()
    others = shadows()
    for _ in range(3):
        proxy.start()
        told = asyncio.run(_load_and_kill(proxy))
        total += told.charged
        spent, released = spent_and_released(proxy)
        for name in ANALYSTS:
            # An answer that was shown was recorded and paid; a charge may lack its answer.
            assert total[name] <= released[name]
            assert spent[name] >= released[name] * EPSILON
    proxy.start()
    told = asyncio.run(load(proxy, connections=10, seconds=2))
    assert told.charged.total() > 0
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
            spent, released = spent_and_released(proxy)
    assert after.charged.total() > 0
    assert set(after.errors) <= {"0A000"}
    total = told.charged + after.charged
    for name in ANALYSTS:
        assert total[name] == released[name]
        assert spent[name] >= released[name] * EPSILON


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


def _check_books(
    told: Told, spent: dict[str, Decimal], released: Counter[str], cap: Decimal
) -> None:
    assert told.charged == +released
    assert all(spent[name] == released[name] * EPSILON for name in spent)
    assert max(spent.values()) <= cap
    assert set(told.errors) == {"0A000", "53400"}
