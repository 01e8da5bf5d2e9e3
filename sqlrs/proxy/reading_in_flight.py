"""One reading of public rows in flight: in a thread, for a limited time, free of charge."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.proxy.backend import Cancellation
from sqlrs.proxy.service import Service

_Found = TypeVar("_Found")


class ReadingInFlight(Generic[_Found]):
    """A reading that may be stopped from outside."""

    def __init__(
        self, service: Service, analyst: str, work: Callable[[Cancellation], _Found]
    ) -> None:
        self._service = service
        self._analyst = analyst
        self._work = work
        self._stop = threading.Event()
        self._reason = ""

    def stop(self, reason: str | None = None, *, leaving: bool = False) -> None:
        """Ask the reading to end."""
        self._reason = self._reason or reason or "canceling statement due to user request"
        self._stop.set()

    async def run(self) -> _Found:
        """What was read; whoever counts as well takes turns with the own counts."""
        loop = asyncio.get_running_loop()
        seconds = self._service.config.limits.catalog_seconds
        timer = loop.call_later(seconds, self.stop, "canceling statement due to statement timeout")
        try:
            async with self._service.turn(self._analyst):
                return await loop.run_in_executor(self._service.counters, self._read)
        finally:
            timer.cancel()

    def _read(self) -> _Found:
        try:
            if self._stop.is_set():
                raise Interrupted(self._reason)
            return self._work(self._stop)
        except Exception as problem:
            if isinstance(problem, SqlrsError) and self._stop.is_set():
                raise Interrupted(self._reason) from None
            if isinstance(problem, SqlrsError) and not isinstance(problem, EngineFailed):
                raise
            self._service.backend_failed(self._analyst, problem)
        # Outside of the handler: the driver's text stays with the driver.
        raise EngineFailed("the public tables could not be read")
