"""One reading of public tables in flight: in a thread, for a limited time, free of charge."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.proxy.backend import TextRow
from sqlrs.proxy.service import Service

# What the shadow can take in at once and still give to the client.
_MOST_CHARACTERS = 2_000_000


class ReadingInFlight:
    """A reading that may be stopped from outside."""

    def __init__(self, service: Service, analyst: str, sql: str) -> None:
        self._service = service
        self._analyst = analyst
        self._sql = sql
        self._stop = threading.Event()
        self._reason = ""

    def stop(self, reason: str | None = None, *, leaving: bool = False) -> None:
        """Ask the reading to end."""
        self._reason = self._reason or reason or "canceling statement due to user request"
        self._stop.set()

    async def run(self) -> Sequence[TextRow]:
        """The rows; whoever counts as well takes turns with the own counts."""
        loop = asyncio.get_running_loop()
        seconds = self._service.config.limits.catalog_seconds
        timer = loop.call_later(seconds, self.stop, "canceling statement due to statement timeout")
        try:
            async with self._service.turn(self._analyst):
                return await loop.run_in_executor(self._service.counters, self._read)
        finally:
            timer.cancel()

    def _read(self) -> Sequence[TextRow]:
        try:
            if self._stop.is_set():
                raise Interrupted(self._reason)
            return self._service.backend.read(
                self._sql,
                rows=self._service.config.limits.public_rows,
                characters=_MOST_CHARACTERS,
                cancel=self._stop,
            )
        except Exception as problem:
            if isinstance(problem, SqlrsError) and self._stop.is_set():
                raise Interrupted(self._reason) from None
            if isinstance(problem, SqlrsError) and not isinstance(problem, EngineFailed):
                raise
            self._service.backend_failed(self._analyst, problem)
        # Outside of the handler: the driver's text stays with the driver.
        raise EngineFailed("the public tables could not be read")
