"""A connection that is started before it is needed, and used again where nothing is left in it.

Starting one takes longer than what most statements do in it. Each is handed out to one user at a
time; what its last user gives back as clean waits for the next one, all others are ended.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What a connection is here."""

    def close(self) -> None:
        """End it."""
        ...


Started = TypeVar("Started", bound=Closable)


class StartedAhead(Generic[Started]):
    """At most one that waits.

    Threads are no daemons: a driver's call that the end of the program cuts off may abort it.
    """

    def __init__(self, start: Callable[[], Started]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._waiting: Future[Started] | None = None
        self._not_ours: list[Future[Started]] = []
        # A forked process shares no thread with this one, so nothing that waits is its own.
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self._end)

    def begin(self) -> None:
        """Start one unless one waits already; it is ready some time after this returns."""
        with self._lock:
            if self._waiting is not None:
                return
            waiting = self._waiting = Future[Started]()
        threading.Thread(target=self._fill, args=(waiting,), name="sqlrs-start").start()

    def take(self) -> Started:
        """The one that waits, or one that is started now."""
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            with suppress(Exception):
                return waiting.result()
        return self._start()

    def give_back(self, used: Started) -> None:
        """Take back one in which nothing is left; it is ended where another one waits already."""
        with self._lock:
            if self._waiting is None:
                self._waiting = Future[Started]()
                self._waiting.set_result(used)
                return
        self.put_away(used)

    def put_away(self, used: Started) -> None:
        """End one in the background."""
        threading.Thread(target=used.close, name="sqlrs-close").start()

    def _fill(self, waiting: Future[Started]) -> None:
        try:
            waiting.set_result(self._start())
        except BaseException as error:
            waiting.set_exception(error)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        # Kept for good: a driver that puts it away waits for threads that are not there.
        if self._waiting is not None:
            self._not_ours.append(self._waiting)
        self._waiting = None

    def _end(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            with suppress(Exception):
                waiting.result().close()
