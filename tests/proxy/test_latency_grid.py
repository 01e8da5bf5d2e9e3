"""Before its point of the time grid nothing tells that a release has ended, in any way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.pacing import Pacing
from sqlrs.settings import Settings
from tests.proxy.harness import RunningProxy, running_proxy

GRID = 1.0
FAST = "SELECT count(*) FROM edge WHERE src = {}"
# Evaluated row by row this takes hours, so it runs whenever somebody looks.
SLOW = (
    "SELECT count(*) FROM number a, number b, number c, number d WHERE a.n * b.n + c.n * d.n < {}"
)
QUERIES = pytest.mark.parametrize("query", [FAST, SLOW], ids=["fast", "slow"])
Look = Callable[[psycopg.Connection], object]


@contextmanager
def _proxy(folder: Path, grid: float, **changes: Any) -> Iterator[RunningProxy]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE edge AS SELECT i AS src, i + 1 AS dst FROM range(100) t(i)")
    connection.execute("CREATE TABLE number AS SELECT unnest(range(5000)) AS n")
    ledger = StoreLedger(f"sqlite:///{folder}/budget.db")
    for analyst in ("alice", "bob", "carol"):
        ledger.grant(epsilon=100, analyst=analyst)
    ledger.grant(epsilon=1000, dataset="data")
    settings = Settings(plan="plain")
    with (
        sqlrs.connect(connection, ledger=ledger, settings=settings) as database,
        running_proxy(LibraryBackend(database), folder, latency_grid=grid, **changes) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    with _proxy(tmp_path_factory.mktemp("grid"), GRID, counts_per_analyst=1, workers=1) as running:
        yield running


def _connect(proxy: RunningProxy, user: str = "alice") -> psycopg.Connection:
    return psycopg.connect(proxy.dsn(user), autocommit=True)


def _history(connection: psycopg.Connection) -> tuple[str, ...]:
    return tuple(s for (s,) in connection.execute("SELECT status FROM sqlrs.history").fetchall())


class _Asked:
    """A count that a thread waits for."""

    def __init__(self, proxy: RunningProxy, sql: str, user: str = "alice") -> None:
        self.connection = _connect(proxy, user)
        self._sql = sql
        self.error: psycopg.Error | None = None
        self.began = time.monotonic()
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.connection.execute(self._sql)
        except psycopg.Error as problem:
            self.error = problem
        self.seconds = time.monotonic() - self.began

    def wait(self) -> _Asked:
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.connection.close()
        return self


def _reserved(watcher: psycopg.Connection, before: int) -> None:
    limit = time.monotonic() + 10
    while len(_history(watcher)) == before:
        assert time.monotonic() < limit
        time.sleep(0.01)


@QUERIES
def test_the_record_of_a_release_changes_at_its_point(proxy: RunningProxy, query: str) -> None:
    sql = query.format(3)
    with _connect(proxy) as watcher:
        before = _history(watcher)
        asked = _Asked(proxy, sql)
        _reserved(watcher, len(before))
        spent = watcher.execute("SHOW sqlrs.budget").fetchone()
        # The fast count was over after a few milliseconds.
        while time.monotonic() - asked.began < 0.6 * GRID:
            assert _history(watcher) == ("reserved", *before)
            assert watcher.execute("SHOW sqlrs.budget").fetchone() == spent
            time.sleep(0.05)
        asked.connection.cancel_safe()
        asked.wait()
        assert asked.error is not None and asked.error.sqlstate == "57014"
        # The stop came before the point: whether the work was done by then is not told.
        assert _history(watcher) == ("interrupted", *before)
        assert asked.seconds >= GRID


@QUERIES
@pytest.mark.parametrize("way", ["cancel", "disconnect", "timeout"])
def test_a_stop_is_seen_at_a_point_whether_the_work_was_done_or_not(
    proxy: RunningProxy, query: str, way: str
) -> None:
    sql = query.format(4)
    with _connect(proxy) as watcher:
        before = _history(watcher)
        asked = _Asked(proxy, sql) if way != "timeout" else None
        if asked is None:
            with closing(_connect(proxy)) as own:
                own.execute(f"SET statement_timeout = '{int(600 * GRID)}ms'")
                began = time.monotonic()
                with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
                    own.execute(sql)
                assert time.monotonic() - began >= GRID
            if _history(watcher) == before:
                return  # On a busy machine the time was over before the charge: no record at all.
        else:
            _reserved(watcher, len(before))
            time.sleep(0.2)
            if way == "cancel":
                asked.connection.cancel_safe()
                asked.wait()
                assert asked.seconds >= GRID
            else:
                asked.connection.pgconn.finish()
                while _history(watcher)[0] == "reserved":
                    time.sleep(0.02)
                assert time.monotonic() - asked.began >= GRID
        assert _history(watcher) == ("interrupted", *before)


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_who_waits_in_line_waits_for_the_point(proxy: RunningProxy, user: str) -> None:
    """The analyst's own next count, and with one worker anybody's."""
    number = 20 if user == "alice" else 30
    with _connect(proxy, user) as watcher, _connect(proxy) as own:
        known = len(_history(own))
        first = _Asked(proxy, FAST.format(number))
        _reserved(own, known)
        before = _history(watcher)
        second = _Asked(proxy, FAST.format(number + 1), user)
        # The first count was over long ago; the second must not have begun.
        while time.monotonic() - first.began < 0.7 * GRID:
            assert _history(watcher) == before
            time.sleep(0.02)
        first.wait()
        second.wait()
        assert first.error is None and second.error is None
        assert _history(own)[-known - 1 :].count("released") >= 1


def test_a_failure_is_recorded_and_told_at_its_point(
    proxy: RunningProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **options: object) -> object:
        raise RuntimeError("broken")

    monkeypatch.setattr("sqlrs.release.Measurements.enough", broken)
    with _connect(proxy) as watcher:
        before = _history(watcher)
        asked = _Asked(proxy, FAST.format(40))
        _reserved(watcher, len(before))
        while time.monotonic() - asked.began < 0.7 * GRID:
            assert _history(watcher) == ("reserved", *before)
            time.sleep(0.05)
        asked.wait()
        assert asked.error is not None and asked.error.sqlstate == "58000"
        assert asked.seconds >= GRID
        assert _history(watcher) == ("database_failed", *before)


def test_without_a_grid_nothing_waits(tmp_path: Path) -> None:
    with _proxy(tmp_path, 0.0) as running, _connect(running) as connection:
        connection.execute(FAST.format(1))
        assert _history(connection) == ("released",)
    pacing = Pacing(0.0, clock=lambda: 0.0)
    pacing.hold()
    # A stop that comes now is too late: the outcome was free to be seen at once.
    pacing.request_stop()
    pacing.hold()


def test_a_proxy_that_stops_does_not_wait_for_a_long_grid(tmp_path: Path) -> None:
    with _proxy(tmp_path, 600.0, shutdown_seconds=0.2) as running:
        asked = _Asked(running, FAST.format(1))
        with _connect(running) as watcher:
            _reserved(watcher, 0)
        began = time.monotonic()
    asked.wait()
    assert time.monotonic() - began < 30
    assert asked.error is not None
    ledger = StoreLedger(f"sqlite:///{tmp_path}/budget.db")
    assert [line.outcome for line in ledger.history()] == ["interrupted"]
    assert ledger.budget(analyst="alice").spent == Decimal("0.5")


@pytest.mark.parametrize(
    ("ended", "stopped", "due"),
    [
        (0.1, None, 1.0),
        (0.999, None, 1.0),
        (1.2, None, 2.0),
        # The point follows from the moment of the stop alone, not from whether the work was done.
        (0.01, 0.2, 1.0),
        (0.25, 0.2, 1.0),
        (0.01, 0.7, 2.0),
        (0.69, 0.7, 2.0),
        (1.1, 0.7, 2.0),
    ],
)
def test_the_point_that_follows(ended: float, stopped: float | None, due: float) -> None:
    now = [0.0]
    pacing = Pacing(1.0, clock=lambda: now[0])
    if stopped is not None:
        now[0] = stopped
        pacing.request_stop()
        assumed = max(ended, stopped + 0.5)
    else:
        assumed = ended
    assert pacing._next_point(assumed) == pytest.approx(due)
