"""HTTP whose requests must arrive in time: who dribbles holds no connection for long."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 60.0
"""From the first moment of a connection, or the first byte of a further request, to its end."""


class ImpatientHttp(H11Protocol):
    """uvicorn's own protocol, which waits for ever for the rest of a request that has begun.

    The time for an answer is not limited here.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Nothing has been asked yet, and soon must be."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Bytes move no deadline; the end of the request lifts it."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._lift()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._lift()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _lift(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
