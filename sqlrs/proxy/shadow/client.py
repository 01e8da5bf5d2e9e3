"""A connection to the shadow: startup, exchanges, streaming and cancel, over its Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from sqlrs.proxy.protocol.codec import Frame, Reader, cstring, int32, pack, packet
from sqlrs.proxy.protocol.replies import report_fields
from sqlrs.proxy.shadow.requests import FLUSH, SYNC

_VERSION = 3 << 16
_CANCEL = 80877102
_CLOSING = frozenset((b"1", b"2", b"3", b"T", b"n", b"C", b"I", b"s", b"Z"))
_UNASKED = frozenset((b"N", b"S", b"A"))
# A row is held several times on its way to the client.
_MAX_FRAME = 4 * 1024 * 1024


class ShadowLost(Exception):
    """The shadow ended the connection or cannot be reached."""


class ShadowRefused(Exception):
    """The shadow answered the startup or a statement of the proxy's own with an error."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate}: {message}")
        self.sqlstate = sqlstate
        self.message = message


class ShadowConnection:
    """One session of the shadow."""

    def __init__(
        self, path: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._path = path
        self._reader = reader
        self._writer = writer
        self._key: tuple[int, bytes] | None = None
        self.parameters: dict[str, str] = {}
        self.on_unasked: Callable[[Frame], None] = lambda frame: None

    @classmethod
    async def open(cls, path: Path, parameters: Mapping[str, str]) -> ShadowConnection:
        """Connect, log in and wait until the shadow is ready."""
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except OSError:
            raise ShadowLost from None
        connection = cls(path, reader, writer)
        try:
            await connection._start(parameters)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def exchange(self, data: bytes, replies: int) -> list[Frame]:
        """Send messages and read up to that many closing frames, or an error."""
        synced = data.endswith(SYNC)
        await self._send(data if synced else data + FLUSH)
        frames: list[Frame] = []
        while replies:
            frame = await self._frame()
            if frame.kind in _UNASKED:
                self.on_unasked(frame)
                continue
            frames.append(frame)
            if frame.kind == b"E" and not synced:
                break
            replies -= frame.kind in _CLOSING
        return frames

    async def stream(self, data: bytes) -> AsyncIterator[Frame]:
        """Send an Execute and yield its frames; the last one is closing or an error."""
        await self._send(data + FLUSH)
        while True:
            frame = await self._frame()
            if frame.kind in _UNASKED:
                self.on_unasked(frame)
                continue
            yield frame
            if frame.kind == b"E" or frame.kind in _CLOSING:
                return

    async def run(self, sql: str) -> None:
        """Run statements of the proxy's own."""
        await self._send(pack(b"Q", cstring(sql)))
        problem: Frame | None = None
        while (frame := await self._frame()).kind != b"Z":
            problem = frame if frame.kind == b"E" else problem
        if problem is not None:
            raise _refusal(problem)

    async def cancel(self) -> None:
        """Ask the shadow to stop what this session runs."""
        if self._key is None:
            return
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_unix_connection(self._path)
            writer.write(packet(int32(_CANCEL), int32(self._key[0]), self._key[1]))
            writer.close()
            await writer.wait_closed()

    def abort(self) -> None:
        """Drop the connection."""
        with contextlib.suppress(Exception):
            self._writer.write(pack(b"X"))
        self._writer.close()

    async def _start(self, parameters: Mapping[str, str]) -> None:
        pairs = b"".join(cstring(k) + cstring(v) for k, v in parameters.items())
        await self._send(packet(int32(_VERSION), pairs, b"\0"))
        while (frame := await self._frame()).kind != b"Z":
            if frame.kind == b"E":
                raise _refusal(frame)
            if frame.kind == b"R" and frame.body != b"\0\0\0\0":
                raise ShadowLost
            if frame.kind == b"S":
                reader = Reader(frame.body)
                name = reader.string()
                self.parameters[name] = reader.string()
            if frame.kind == b"K":
                reader = Reader(frame.body)
                self._key = (reader.int32(), reader.rest())

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            raise ShadowLost from None

    async def _frame(self) -> Frame:
        try:
            header = await self._reader.readexactly(5)
            size = int.from_bytes(header[1:], "big") - 4
            if size > _MAX_FRAME:
                raise ShadowRefused("54000", "a row of the catalog is too long: ask for less")
            if size < 0:
                raise ShadowLost
            frame = Frame(header[:1], await self._reader.readexactly(size))
        except (OSError, asyncio.IncompleteReadError):
            raise ShadowLost from None
        if frame.kind == b"E" and _says_goodbye(frame):
            raise ShadowLost
        return frame


def _says_goodbye(frame: Frame) -> bool:
    """Whether the shadow as a whole stops, crashes or starts: clients hear of it in our words."""
    found = report_fields(frame.body)
    return found.get("V") in ("FATAL", "PANIC") and found.get("C", "").startswith("57P")


def _refusal(frame: Frame) -> ShadowRefused:
    found = report_fields(frame.body)
    return ShadowRefused(found.get("C", "XX000"), found.get("M", ""))
