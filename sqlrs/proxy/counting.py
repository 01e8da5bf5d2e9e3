"""One private count in flight: run in a thread, cancelled, timed out, answered on the time grid."""

from __future__ import annotations

import asyncio
import math
import threading

from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.proxy.backend import Outcome
from sqlrs.proxy.effects import Count
from sqlrs.proxy.logs import log
from sqlrs.proxy.service import Service


class Counting:
    """A count that may be stopped from outside."""

    def __init__(self, service: Service, analyst: str, request: Count) -> None:
        self._service = service
        self._analyst = analyst
        self._request = request
        self._stop = threading.Event()
        self._stopped = asyncio.Event()
        self._reason = "canceling statement due to user request"

    def stop(self, reason: str | None = None) -> None:
        """Ask the count to end; its charge, if made, stays."""
        self._reason = reason or self._reason
        self._stop.set()
        self._stopped.set()

    async def run(self) -> Outcome:
        """The outcome, or the one error that stands for every failure."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = self._service.config.limits.query_seconds
        if self._request.timeout_ms:
            limit = min(limit, self._request.timeout_ms / 1000)
        timer = loop.call_later(limit, self.stop, "canceling statement due to statement timeout")
        try:
            async with self._service.turn(self._analyst):
                self._raise_if_stopped()
                outcome = await loop.run_in_executor(self._service.counters, self._count)
            await self._wait_for_grid(started)
            return outcome
        except SqlrsError:
            self._raise_if_stopped()
            await self._wait_for_grid(started)
            raise
        finally:
            timer.cancel()

    def _count(self) -> Outcome:
        request = self._request
        try:
            return self._service.backend.count(
                self._analyst,
                request.sql,
                epsilon=request.epsilon,
                error_bars=request.error_bars,
                cancel=self._stop,
            )
        except SqlrsError:
            raise
        except Exception as problem:
            # Its text could quote data; its type says enough to the operator.
            log("backend_failed", "error", analyst=self._analyst, reason=type(problem).__name__)
            raise failed() from None

    async def _wait_for_grid(self, started: float) -> None:
        """Answer at a multiple of the grid, so that the duration tells little.

        A cancel that comes before that point wins: otherwise its success would tell whether the
        work was done already.
        """
        grid = self._service.config.latency_grid
        if grid:
            elapsed = asyncio.get_running_loop().time() - started
            wait = math.ceil(elapsed / grid) * grid - elapsed
            try:
                await asyncio.wait_for(self._stopped.wait(), wait)
            except TimeoutError:
                return
            self._raise_if_stopped()

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise Interrupted(self._reason) from None


def failed() -> EngineFailed:
    """The one error for everything unexpected."""
    return EngineFailed("the count could not be answered")
