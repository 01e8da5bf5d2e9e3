"""Frames of the PostgreSQL protocol: primitive values, message boundaries and their limits."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sqlrs.records import dataclass

_INT16 = struct.Struct("!h")
_UINT16 = struct.Struct("!H")
_INT32 = struct.Struct("!i")
_UINT32 = struct.Struct("!I")
_HEADER = struct.Struct("!cI")


class ProtocolViolation(Exception):
    """The peer sent bytes that are not the protocol; the connection cannot go on."""


class Frame(NamedTuple):
    """One message: its type byte and what follows the length."""

    kind: bytes
    body: bytes


class Reader:
    """Reads the primitive values of one message body and insists that all of it is used."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        if size < 0 or self._at + size > len(self._body):
            raise ProtocolViolation("the message is shorter than it says")
        self._at += size
        return self._body[self._at - size : self._at]

    def int16(self) -> int:
        """A signed 16-bit integer."""
        value: int = _INT16.unpack(self.take(2))[0]
        return value

    def count16(self) -> int:
        """An unsigned 16-bit integer: how many values follow."""
        value: int = _UINT16.unpack(self.take(2))[0]
        return value

    def int32(self) -> int:
        """A signed 32-bit integer."""
        value: int = _INT32.unpack(self.take(4))[0]
        return value

    def uint32(self) -> int:
        """An unsigned 32-bit integer: an object identifier."""
        value: int = _UINT32.unpack(self.take(4))[0]
        return value

    def int16s(self) -> tuple[int, ...]:
        """A number and that many signed 16-bit integers, all in one go."""
        count = self.count16()
        return struct.unpack(f"!{count}h", self.take(2 * count))

    def uint32s(self) -> tuple[int, ...]:
        """A number and that many object identifiers, all in one go."""
        count = self.count16()
        return struct.unpack(f"!{count}I", self.take(4 * count))

    def raw_string(self) -> bytes:
        """A string up to its zero byte, not decoded."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("a string has no end")
        text = self._body[self._at : end]
        self._at = end + 1
        return text

    def string(self) -> str:
        """A UTF-8 string up to its zero byte."""
        try:
            return self.raw_string().decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolViolation("a string is not UTF-8") from None

    def value(self) -> bytes | None:
        """A length and that many bytes; minus one stands for NULL."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        """Everything not read yet."""
        return self.take(len(self._body) - self._at)

    def end(self) -> None:
        """Refuse a message that is longer than its content."""
        if self._at != len(self._body):
            raise ProtocolViolation("the message is longer than its content")


@dataclass(frozen=True)
class FrameLimits:
    """How long a message may be: its type must be named, and its length must not exceed this."""

    kinds: dict[bytes, int]

    def check(self, kind: bytes, length: int) -> None:
        """Refuse an unknown type or a length out of range before the body is buffered."""
        limit = self.kinds.get(kind)
        if limit is None:
            raise ProtocolViolation("unexpected message type")
        if not 4 <= length <= limit + 4:
            raise ProtocolViolation("invalid message length")


class FrameBuffer:
    """Cuts a byte stream into frames and never holds more than one message over its limit."""

    def __init__(self, limits: FrameLimits | None) -> None:
        self.limits = limits
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add bytes as they arrive."""
        self._bytes += data

    def drain(self) -> bytes:
        """All bytes held, which are then forgotten."""
        data = bytes(self._bytes)
        self._bytes.clear()
        return data

    def next(self) -> Frame | None:
        """The next whole message, or None while it is incomplete."""
        if not self._bytes:
            return None
        if self.limits is not None and bytes(self._bytes[:1]) not in self.limits.kinds:
            raise ProtocolViolation("unexpected message type")
        if len(self._bytes) < 5:
            return None
        kind, length = _HEADER.unpack_from(self._bytes)
        if self.limits is not None:
            self.limits.check(kind, length)
        elif length < 4:
            raise ProtocolViolation("invalid message length")
        if len(self._bytes) < length + 1:
            return None
        frame = Frame(kind, bytes(self._bytes[5 : length + 1]))
        del self._bytes[: length + 1]
        return frame

    def next_startup(self, limit: int) -> bytes | None:
        """The next packet without a type byte, as they open a connection, or None if incomplete."""
        if len(self._bytes) < 4:
            return None
        length: int = _UINT32.unpack_from(self._bytes)[0]
        if not 8 <= length <= limit:
            raise ProtocolViolation("invalid length of startup packet")
        if len(self._bytes) < length:
            return None
        packet = bytes(self._bytes[4:length])
        del self._bytes[:length]
        return packet


def pack(kind: bytes, *parts: bytes) -> bytes:
    """One message from its type and the parts of its body."""
    body = b"".join(parts)
    return kind + _UINT32.pack(len(body) + 4) + body


def packet(*parts: bytes) -> bytes:
    """A message without a type byte."""
    body = b"".join(parts)
    return _UINT32.pack(len(body) + 4) + body


def cstring(text: str | bytes) -> bytes:
    """A string and its zero byte."""
    data = text.encode("utf-8") if isinstance(text, str) else text
    if b"\0" in data:
        raise ProtocolViolation("a string holds a zero byte")
    return data + b"\0"


def int16(value: int) -> bytes:
    """A signed 16-bit integer."""
    return _INT16.pack(value)


def int32(value: int) -> bytes:
    """A signed 32-bit integer."""
    return _INT32.pack(value)


def sized(value: bytes | None) -> bytes:
    """A value with its length in front; NULL is minus one."""
    return int32(-1) if value is None else int32(len(value)) + value
