"""When something about a release may be seen: at the points of the time grid, and not before."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from sqlrs.errors import Interrupted

# How long a stopped count may take to end. Its point of the grid is chosen as if it took as long,
# so that a count that had ended before the stop looks like one that was still running.
_STOPPING_SECONDS = 0.5
_BY_USER = "canceling statement due to user request"


class Pacing:
    """The clock of one count, from its request to the point where its outcome may be seen.

    ``hold`` is called by the thread that computes, before the outcome is recorded anywhere:
    the ledger's line, the places in both queues, the answer, metrics and logs come after it.
    """

    def __init__(self, grid: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._grid = grid
        self._clock = clock
        self._started = clock()
        self._stopped_at = 0.0
        self._reason = _BY_USER
        self._leaving = False
        self._decided = False
        self.stop = threading.Event()

    def request_stop(self, reason: str | None = None, *, leaving: bool = False) -> None:
        """Ask the count to end. ``leaving``: the proxy stops, so nobody waits for the grid."""
        self._leaving = self._leaving or leaving
        if not self.stop.is_set():
            self._reason = reason or _BY_USER
            self._stopped_at = self._clock()
            self.stop.set()

    def hold(self) -> None:
        """Wait until the outcome may be seen; a stop before that point takes its place.

        Otherwise a stop that comes too late would tell that the work was done already.
        """
        if self._decided:
            return
        if not self._grid:
            self._decided = True
            return
        ended = self._clock()
        stopped = self.stop.wait(self._next_point(ended) - ended)
        self._decided = True
        if stopped:
            self._wait_as_stopped(ended)
            raise self.stopped()

    def stopped(self) -> Interrupted:
        """The error of a count that was stopped, by whomever."""
        return Interrupted(self._reason)

    def _wait_as_stopped(self, ended: float) -> None:
        assumed = max(ended, self._stopped_at + _STOPPING_SECONDS)
        due = assumed if self._leaving else self._next_point(assumed)
        while (left := due - self._clock()) > 0:
            # Short waits: the proxy may have to leave in the meantime.
            time.sleep(min(left, 0.1))
            if self._leaving:
                due = min(due, assumed)

    def _next_point(self, moment: float) -> float:
        steps = max(1, math.ceil((moment - self._started) / self._grid))
        return self._started + steps * self._grid
