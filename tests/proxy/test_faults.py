"""kill -9 of the shadow and of the data's server while clients ask: paid, clean, and over soon."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from sqlrs.answer import Answer
from sqlrs.ledger.base import RELEASED, Charge
from sqlrs.ledger.store import StoreLedger
from tests.proxy.books import Received, check_books
from tests.proxy.crowd import PRICE, Crowd
from tests.proxy.double import DoubleBackend
from tests.proxy.harness import running_proxy
from tests.proxy.load import ProxyProcess, graph_file, proxy_process
from tests.proxy.mortal_server import MortalServer

ANALYSTS = ["alice", "bob", "carol"]
NEWCOMERS = ["dora", "emil"]
CRASHED = "terminating connection: the catalog database is gone"
STARTING = "the catalog database is starting up"
FAILED = "the release could not be completed; its budget stays spent"
AWAY = "the database does not answer; nothing was read or charged"
LOST = "the connection to PostgreSQL was lost"

SLOW = pytest.mark.slow


def children(process: int) -> dict[int, str]:
    """The processes that this one started, with their titles."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(process)],
        capture_output=True,
        text=True,
        check=False,
    )
    rows = (line.split(None, 1) for line in listed.stdout.splitlines())
    return {int(row[0]): row[1] for row in rows if len(row) == 2}


def shadow_postmaster(proxy: ProxyProcess) -> int | None:
    titles = children(proxy.process)
    servers = [pid for pid, title in titles.items() if "/data" in title and "-D" in title]
    return next((pid for pid in servers if "initdb" not in titles[pid]), None)


def kill_shadow(proxy: ProxyProcess, which: str) -> int:
    postmaster = shadow_postmaster(proxy)
    assert postmaster is not None
    victim = postmaster
    if which == "backend":
        titles = children(postmaster)
        victim = next(
            pid for pid, title in titles.items() if title.startswith("postgres: analyst ")
        )
    os.kill(victim, signal.SIGKILL)
    return postmaster


def test_the_books_are_read_strictly(tmp_path: Path) -> None:
    ledger = StoreLedger(f"sqlite:///{tmp_path}/budget.db")
    ledger.grant(epsilon=1, analyst="alice")
    ledger.grant(epsilon=1, dataset="data")
    ticket = ledger.reserve(Charge("alice", "data", "SELECT 1", "noise", PRICE))
    ledger.settle(ticket, Answer(7, PRICE, "noise", None).to_json())
    ledger.fail(ledger.reserve(Charge("alice", "data", "SELECT 2", "noise", PRICE)), "failed")
    paid, repeat = Received("alice", 7, PRICE), Received("alice", 7, Decimal(0))
    check_books(ledger, [paid, repeat, repeat])
    for wrong in (
        [paid, paid],
        [paid, paid._replace(value=8)],
        [repeat._replace(value=8)],
        [repeat._replace(analyst="bob")],
        [paid._replace(epsilon=PRICE / 2)],
    ):
        with pytest.raises(AssertionError):
            check_books(ledger, wrong)
    ledger.grant(epsilon="0.3", analyst="alice")
    with pytest.raises(AssertionError):
        check_books(ledger, [paid])


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    folder = tmp_path_factory.mktemp("faults")
    analysts = [*ANALYSTS, *NEWCOMERS]
    with proxy_process(folder, graph_file(folder), analysts, "200") as running:
        yield running


@pytest.mark.parametrize("which", [pytest.param("postmaster", marks=SLOW), "backend"])
def test_the_shadow_is_killed_during_load(proxy: ProxyProcess, which: str) -> None:
    crowd = Crowd(proxy.dsn, ANALYSTS)
    with crowd.asking():
        crowd.wait_for_more()
        assert crowd.failures == []
        process = proxy.process
        first = kill_shadow(proxy, which)
        crowd.wait_until(lambda: proxy.status("/healthz")[0] == 503)
        # The next one dies too, while it is built.
        crowd.wait_until(lambda: shadow_postmaster(proxy) not in (first, None))
        kill_shadow(proxy, "postmaster")
        crowd.wait_for_more()
        assert proxy.status("/healthz") == (200, "ok\n")
        assert proxy.process == process
    check_books(proxy.ledger, crowd.received)
    assert {answer.epsilon for answer in crowd.received} <= {PRICE, Decimal(0)}
    assert crowd.failures
    for failure in crowd.failures:
        if failure.kind == "connect":
            assert STARTING in failure.message, failure
        else:
            assert failure.sqlstate == "57P02", failure
            assert CRASHED in failure.message, failure


def test_the_proxy_is_killed_during_load(proxy: ProxyProcess) -> None:
    crowd = Crowd(proxy.dsn, ANALYSTS)
    with crowd.asking():
        crowd.wait_for_more()
        assert crowd.failures == []
        proxy.kill()
        crowd.wait_until(lambda: len(crowd.failures) >= 6)
        proxy.start()
        crowd.wait_for_more()
    check_books(proxy.ledger, crowd.received)
    assert {failure.sqlstate for failure in crowd.failures} == {None}


def test_analysts_of_a_crashed_shadow_come_back(proxy: ProxyProcess) -> None:
    # The roles of both were made a moment ago: the crash comes before they are on disk.
    with (
        psycopg.connect(proxy.dsn("dora"), autocommit=True) as dora,
        psycopg.connect(proxy.dsn("emil"), autocommit=True) as emil,
    ):
        kill_shadow(proxy, "backend")
        # Nobody sends anything: who waits is told, as PostgreSQL does it.
        for connection in (dora, emil):
            assert select.select([connection], [], [], 10)[0]
            with pytest.raises(psycopg.errors.CrashShutdown):
                connection.execute("SELECT 1")
    crowd = Crowd(proxy.dsn, NEWCOMERS)
    with crowd.asking(clients=2):
        crowd.wait_for_more()
    assert {answer.analyst for answer in crowd.received} == set(NEWCOMERS)
    assert {failure.kind for failure in crowd.failures} <= {"connect"}


def test_a_count_that_outlives_the_shadow_is_in_the_record(tmp_path: Path) -> None:
    backend = DoubleBackend()
    backend.seconds = 1.0
    count = "SELECT count(*) FROM edge"
    with ThreadPoolExecutor() as pool, running_proxy(backend, tmp_path) as proxy:
        with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
            notices: list[object] = []
            connection.add_notice_handler(notices.append)
            running = pool.submit(connection.execute, count)
            while not backend.spent:
                assert not running.done()
            postmaster = proxy.shadow.process
            assert postmaster is not None
            os.kill(postmaster, signal.SIGKILL)
            with pytest.raises(psycopg.errors.CrashShutdown):
                running.result(30)
            # An error and nothing else: half of an exchange confuses clients.
            assert notices == []
        crowd = Crowd(proxy.dsn, ["alice"])
        crowd.wait_until(lambda: proxy.shadow.alive)
        with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
            assert connection.execute(count).fetchone() == (backend.rows["alice"][0].answer,)
    assert backend.spent == {"alice": Decimal("0.5")}


@pytest.mark.parametrize("ledger", ["file", pytest.param("server", marks=SLOW)])
def test_the_data_server_is_killed_during_load(tmp_path: Path, ledger: str) -> None:
    with MortalServer() as server, server.database() as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("CREATE TABLE edge (src bigint, dst bigint, PRIMARY KEY (src, dst))")
            owner.execute("INSERT INTO edge SELECT g % 300, g FROM generate_series(1, 2000) g")
        data = f'db = "{url}"'
        where = url if ledger == "server" else None
        with proxy_process(tmp_path, data, ANALYSTS, "200", ledger=where) as proxy:
            crowd = Crowd(proxy.dsn, ANALYSTS)
            with crowd.asking():
                crowd.wait_for_more()
                assert crowd.failures == []
                assert proxy.status("/healthz") == (200, "ok\n")
                server.kill()
                crowd.wait_until(lambda: proxy.status("/healthz")[0] == 503)
                before = len(crowd.received)
                crowd.wait_until(lambda: len(crowd.failures) >= 8)
                asked = crowd.worked["catalog"]
                crowd.wait_until(lambda: crowd.worked["catalog"] > asked)
                while_down = crowd.received[before:]
                server.start_again()
                crowd.wait_until(lambda: proxy.status("/healthz")[0] == 200)
                resumed = len(crowd.failures)
                crowd.wait_for_more()
                late = crowd.failures[resumed:]
            check_books(proxy.ledger, crowd.received)
            lines = proxy.ledger.history()
            proxy.ledger.close()
    # No data, no fresh answer.
    assert {answer.epsilon for answer in while_down} <= {Decimal(0)}
    # A count that the server's end met half way was charged and told the one error; one that came
    # later met no server, and was not charged. Sessions went on.
    assert len(late) <= 6
    if ledger == "file":
        told = Counter(f.message.partition("\n")[0] for f in crowd.failures)
        assert {f.sqlstate for f in crowd.failures} == {"58000"}
        # Lost: the server went while the schema was compared, which is before the charge.
        assert told.keys() <= {FAILED, AWAY, LOST}
        assert told[AWAY] > 0
        outcomes = Counter(line.outcome for line in lines)
        assert outcomes[RELEASED] == sum(answer.epsilon > 0 for answer in crowd.received)
        assert outcomes["database_failed"] == told[FAILED]
        assert outcomes.keys() <= {RELEASED, "database_failed"}
    else:
        assert {f.sqlstate for f in crowd.failures} == {"58000"}
