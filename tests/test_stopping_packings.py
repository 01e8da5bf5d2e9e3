"""Ctrl-C stops the solver of packings in the middle of its work."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from sqlrs.errors import EngineFailed, Interrupted
from sqlrs.measures import OwnedResults
from sqlrs.mechanisms.packing_solver import CertifiedSums


def large() -> OwnedResults:
    """Triples of which every unit is cut: it takes the solver many seconds."""
    numbers = np.random.default_rng(3).integers(0, 3000, (120_000, 3))
    rows = np.unique(np.sort(numbers, axis=1), axis=0)
    rows = rows[(rows[:, 0] < rows[:, 1]) & (rows[:, 1] < rows[:, 2])]
    return OwnedResults(tuple(rows[:, i].tolist() for i in range(3)), [1] * len(rows))


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_and_time_stop_the_solver() -> None:
    results = large()
    main = threading.main_thread().ident
    assert main is not None
    # To the thread that waits: one that another thread gets does not wake it.
    threading.Timer(0.7, signal.pthread_kill, [main, signal.SIGINT]).start()
    start = time.monotonic()
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        CertifiedSums(results, 600).at(16)
    with pytest.raises(EngineFailed):
        CertifiedSums(results, 0.7).at(16)
    assert time.monotonic() - start < 20
