"""One client's socket: bounded buffers both ways, TLS in the middle of it, and its loss noticed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import cast

_READ_HIGH = 64 * 1024
_WRITE_HIGH = 256 * 1024
# Each piece that is sent costs a TLS record and a system call, so small ones are sent together.
_SEND_AT = 16 * 1024
# How long a client that was told to go may take to say good-bye in turn.
_SHUTDOWN_SECONDS = 2.0
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


class SlowClient(Exception):
    """The client does not take its answers."""


class Wire(asyncio.Protocol):
    """Bytes from and to one client."""

    def __init__(self, accepted: Callable[[Wire], None]) -> None:
        self._accepted = accepted
        self._transport: asyncio.Transport | None = None
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False
        self.on_lost: Callable[[], None] = lambda: None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        self._use(cast(asyncio.Transport, transport))
        connection = transport.get_extra_info("socket")
        if connection is not None:
            # A client that vanished without a word is found out in about two minutes.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                option = getattr(socket, name, None)
                if option is not None:
                    with contextlib.suppress(OSError):
                        connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self._accepted(self)

    def data_received(self, data: bytes) -> None:
        """Keep bytes until they are read; stop reading when there are many."""
        self._incoming += data
        if len(self._incoming) > _READ_HIGH and not self._paused:
            self._paused = True
            self._use_transport().pause_reading()
        self._arrived.set()

    def eof_received(self) -> None:
        """The client will send no more: nothing that it did not finish is answered."""
        self._gone()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._gone()

    def pause_writing(self) -> None:
        """The client is slower than its answers."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The client caught up."""
        self._writable.set()

    @property
    def peer(self) -> str:
        """The client's address, without its port."""
        name = self._use_transport().get_extra_info("peername")
        return str(name[0]) if name else "unix"

    @property
    def pending(self) -> bool:
        """Whether bytes wait to be read."""
        return bool(self._incoming)

    async def read(self, seconds: float) -> bytes:
        """The bytes that arrived; empty when the client is gone; TimeoutError when none come."""
        if not self._incoming and not self.lost:
            self.flush()
            self._arrived.clear()
            await asyncio.wait_for(self._arrived.wait(), seconds)
        data = bytes(self._incoming)
        self._incoming.clear()
        if self._paused and not self.lost:
            self._paused = False
            self._use_transport().resume_reading()
        return data

    def wake(self) -> None:
        """Let a waiting ``read`` return with what there is."""
        self._arrived.set()

    def write(self, data: bytes) -> None:
        """Send with what follows: at ``flush``, before waiting for the client, or when much."""
        if not self.lost:
            self._outgoing += data
            if len(self._outgoing) > _SEND_AT:
                self.flush()

    def flush(self) -> None:
        """Send what was written; what the client does not take yet is kept."""
        if self._outgoing and not self.lost:
            self._use_transport().write(bytes(self._outgoing))
        self._outgoing.clear()

    def discard(self) -> None:
        """Forget what was written and not sent yet."""
        self._outgoing.clear()

    async def drain(self, seconds: float) -> None:
        """Wait until the client took most of what was written."""
        if not self._writable.is_set() and not self.lost:
            try:
                await asyncio.wait_for(self._writable.wait(), seconds)
            except TimeoutError:
                self.abort()
                raise SlowClient from None

    async def start_tls(self, context: ssl.SSLContext, seconds: float) -> None:
        """Go on encrypted."""
        self.flush()
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(
            self._use_transport(),
            self,
            context,
            server_side=True,
            ssl_handshake_timeout=seconds,
            ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        if transport is None:
            raise ConnectionError
        self._use(transport)

    def close(self) -> None:
        """Send what is left, then close."""
        if self._transport is not None:
            self.flush()
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _use(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_HIGH)

    def _use_transport(self) -> asyncio.Transport:
        if self._transport is None:
            raise ConnectionError("not connected")
        return self._transport

    def _gone(self) -> None:
        if not self.lost:
            self.lost = True
            self._arrived.set()
            self._writable.set()
            self.on_lost()
