"""Stopping a statement: from another thread, by Ctrl-C, by a time limit; the engine lives on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.engines.watch import Stop, watched
from sqlrs.errors import EngineFailed, Interrupted
from tests.engines.stops import ONE, press_ctrl_c, slow

TARGETS = ["duckdb", "postgres"]
# Far above what a stop takes, far below what the statement would take.
PATIENCE = 30.0


@pytest.fixture(params=TARGETS)
def url(request: pytest.FixtureRequest) -> str:
    return "duckdb://" if request.param == "duckdb" else request.getfixturevalue("postgres_db")


def alive(engine: Engine) -> bool:
    with engine.snapshot() as snapshot:
        return snapshot.scalar(ONE) == 1


def test_a_thread_stops_the_running_statement(url: str) -> None:
    with closing(open_engine(url)) as engine:
        began = time.monotonic()
        threading.Timer(0.3, engine.interrupt).start()
        with pytest.raises(Interrupted), engine.snapshot() as snapshot:
            snapshot.scalar(slow(engine))
        assert time.monotonic() - began < PATIENCE
        assert alive(engine)


def test_a_stop_between_statements_is_not_lost(url: str) -> None:
    with closing(open_engine(url)) as engine:
        with engine.snapshot() as snapshot:
            engine.interrupt()
            with pytest.raises(Interrupted):
                snapshot.scalar(ONE)
        assert alive(engine)


def test_ctrl_c_between_statements_is_a_stop_too(url: str) -> None:
    with closing(open_engine(url)) as engine:
        with pytest.raises(Interrupted), engine.snapshot():
            raise KeyboardInterrupt
        assert alive(engine)


def test_all_snapshots_stop(url: str) -> None:
    with closing(open_engine(url)) as engine:
        ended: list[type[BaseException]] = []

        def work() -> None:
            try:
                with engine.snapshot() as snapshot:
                    snapshot.scalar(slow(engine))
            except Interrupted as error:
                ended.append(type(error))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + PATIENCE
        while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
            time.sleep(0.2)
            engine.interrupt()
        assert ended == [Interrupted, Interrupted]


@pytest.mark.parametrize("after", [0.05, 0.7])
def test_ctrl_c_stops_the_statement(url: str, after: float) -> None:
    output, seconds = press_ctrl_c(url, after)
    assert output == "stopped 1\n"
    assert seconds < PATIENCE


def test_a_time_limit_ends_the_statement(url: str) -> None:
    with closing(open_engine(url, timeout=0.3)) as engine:
        with pytest.raises(EngineFailed) as caught, engine.snapshot() as snapshot:
            snapshot.scalar(slow(engine))
        assert caught.value.code == "timeout"
        assert alive(engine)


def blocked() -> tuple[Callable[[], str], Callable[[], None]]:
    """A call that only its stop function ends."""
    stopped = threading.Event()

    def call() -> str:
        assert stopped.wait(PATIENCE)
        return "stopped late"

    return call, stopped.set


def test_watching_tells_results_errors_and_stops_apart() -> None:
    assert watched(lambda: 7, lambda: None, timeout=None).result == 7
    failed = watched(lambda: 1 // 0, lambda: None, timeout=5)
    assert isinstance(failed.error, ZeroDivisionError) and failed.result is None
    outcome = watched(*blocked(), timeout=0.05)
    assert outcome.stopped is Stop.TIMEOUT and outcome.result is None


def test_a_stop_that_comes_too_early_is_repeated() -> None:
    call, stop = blocked()
    attempts: list[float] = []

    def reluctant() -> None:
        attempts.append(time.monotonic())
        if len(attempts) == 3:
            stop()

    assert watched(call, reluctant, timeout=0.01).stopped is Stop.TIMEOUT
    assert len(attempts) == 3
