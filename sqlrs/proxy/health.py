"""Whether counts can be answered now: the shadow, the data and the ledger, asked one at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_PATIENCE_SECONDS = 2.0
# Whoever asks more often gets the last answer: the data's server is not to be busy with this.
_FRESH_SECONDS = 1.0
_SILENT = "the data or the ledger does not answer in time"


class Health:
    """Looks after what counts depend on; a look that hangs is not repeated until it ends."""

    def __init__(self, shadow_alive: Callable[[], bool], trouble: Callable[[], str | None]) -> None:
        self._shadow_alive = shadow_alive
        self._trouble = trouble
        self._look: asyncio.Task[None] | None = None
        self._last: str | None = None
        self._at = -_FRESH_SECONDS

    async def problem(self) -> str | None:
        """What is wrong, in words for the operator; None if nothing is."""
        if not self._shadow_alive():
            return "the shadow database is not running"
        return await self.backend_problem()

    async def backend_problem(self) -> str | None:
        """What is wrong with the data or the ledger."""
        if self._look is None and time.monotonic() - self._at < _FRESH_SECONDS:
            return self._last
        if self._look is None:
            self._look = asyncio.create_task(self._ask())
        done, _ = await asyncio.wait({self._look}, timeout=_PATIENCE_SECONDS)
        return self._last if done else _SILENT

    async def _ask(self) -> None:
        try:
            self._last = await asyncio.to_thread(self._trouble)
        except Exception:
            self._last = _SILENT
        self._at = time.monotonic()
        self._look = None
