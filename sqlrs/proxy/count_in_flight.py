"""One private answer in flight: waits its turn, runs in a thread, is stopped or timed out."""

from __future__ import annotations

import asyncio

from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.proxy.backend import CountOutcome, TableOutcome
from sqlrs.proxy.effects import Count
from sqlrs.proxy.logs import log
from sqlrs.proxy.pacing import Pacing
from sqlrs.proxy.service import Service, failed


class Counting:
    """A count that may be stopped from outside."""

    def __init__(self, service: Service, analyst: str, request: Count) -> None:
        self._service = service
        self._analyst = analyst
        self._request = request
        self._pacing = Pacing(service.config.latency_grid)

    def stop(self, reason: str | None = None, *, leaving: bool = False) -> None:
        """Ask the count to end; its charge, if made, stays."""
        self._pacing.request_stop(reason, leaving=leaving)

    async def run(self) -> CountOutcome | TableOutcome:
        """The outcome, or the one error that stands for every failure."""
        loop = asyncio.get_running_loop()
        limit = self._service.config.limits.query_seconds
        if self._request.timeout_ms:
            limit = min(limit, self._request.timeout_ms / 1000)
        timer = loop.call_later(limit, self.stop, "canceling statement due to statement timeout")
        try:
            # Both places, the analyst's and the worker's, are free again at the point of the
            # grid only: who waits for one must not learn when the work was done.
            async with self._service.turn(self._analyst):
                return await loop.run_in_executor(self._service.counters, self._paced)
        finally:
            timer.cancel()

    def _paced(self) -> CountOutcome | TableOutcome:
        try:
            outcome = self._count()
        except SqlrsError as problem:
            self._pacing.hold()
            if isinstance(problem, EngineFailed):
                self._service.backend_failed(self._analyst, problem)
            elif problem.code == "schema_changed":
                log(problem.code, "error", analyst=self._analyst)
            if isinstance(problem, Interrupted) and self._pacing.stop.is_set():
                # In the words of whoever stopped it, not of the engine.
                raise self._pacing.stopped() from None
            raise
        except Exception as problem:
            self._pacing.hold()
            self._service.backend_failed(self._analyst, problem)
            raise failed() from None
        self._pacing.hold()
        return outcome

    def _count(self) -> CountOutcome | TableOutcome:
        if self._pacing.stop.is_set():
            raise self._pacing.stopped()
        request = self._request
        if request.types is not None:
            return self._service.backend.table(
                self._analyst,
                request.sql,
                types=request.types,
                epsilon=request.epsilon,
                error_bars=request.error_bars,
                cancel=self._pacing.stop,
                hold=self._pacing.hold,
                error=request.error,
            )
        return self._service.backend.count(
            self._analyst,
            request.sql,
            epsilon=request.epsilon,
            error_bars=request.error_bars,
            cancel=self._pacing.stop,
            hold=self._pacing.hold,
            error=request.error,
        )
