"""From the first byte to an authenticated client: a state machine without I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import field
from enum import Enum, auto

from sqlrs.proxy.protocol.codec import FrameBuffer, FrameLimits, ProtocolViolation, Reader
from sqlrs.proxy.protocol.replies import (
    Report,
    authentication_continue,
    authentication_final,
    authentication_ok,
    authentication_sasl,
    fatal,
    negotiate_version,
)
from sqlrs.proxy.protocol.scram import ScramFailure, ScramServer
from sqlrs.records import dataclass

_STARTUP_LIMIT = 10_000
_SASL_LIMITS = FrameLimits({b"p": 2048})
_CANCEL, _SSL, _GSS = 80877102, 80877103, 80877104
_NEWEST_MINOR = 2
_CODE = struct.Struct("!I")

FAILED = fatal("28P01", "authentication failed")


@dataclass(frozen=True)
class Send:
    """Bytes for the client."""

    data: bytes


@dataclass(frozen=True)
class StartTls:
    """The client was told S: what follows is a TLS handshake."""


@dataclass(frozen=True)
class Cancel:
    """A request to stop what another connection runs; it gets no answer."""

    process: int
    secret: bytes


@dataclass(frozen=True)
class Authenticated:
    """The client is known: its name, database, settings and protocol version."""

    user: str
    database: str
    settings: dict[str, str]
    minor: int


@dataclass(frozen=True)
class Rejected:
    """The connection ends with this report."""

    report: Report
    authentication: bool = False


Step = Send | StartTls | Cancel | Authenticated | Rejected


class _State(Enum):
    STARTUP = auto()
    TLS = auto()
    SASL_FIRST = auto()
    SASL_FINAL = auto()
    DONE = auto()


@dataclass
class Handshake:
    """Feeds on bytes and yields steps. ``scram`` makes an exchange for a user name."""

    scram: Callable[[str], ScramServer]
    offer_tls: bool
    require_tls: bool
    encrypted: bool = False
    _buffer: FrameBuffer = field(default_factory=lambda: FrameBuffer(_SASL_LIMITS))
    _state: _State = _State.STARTUP
    _asked: set[int] = field(default_factory=set)
    _exchange: ScramServer | None = None
    _client: Authenticated | None = None

    def receive(self, data: bytes) -> list[Step]:
        """What to do about the bytes that arrived."""
        self._buffer.feed(data)
        steps: list[Step] = []
        try:
            while self._state in (_State.STARTUP, _State.SASL_FIRST, _State.SASL_FINAL):
                more = self._advance()
                if more is None:
                    break
                steps += more
        except ProtocolViolation as violation:
            steps.append(self._reject(fatal("08P01", str(violation))))
        except ScramFailure:
            steps.append(self._reject(FAILED, authentication=True))
        return steps

    def tls_started(self) -> None:
        """The TLS handshake is over; the client starts again inside it."""
        if self._state is not _State.TLS:
            raise RuntimeError("TLS was not asked for")
        self.encrypted = True
        self._state = _State.STARTUP

    def leftover(self) -> bytes:
        """Bytes that came after the authentication and belong to the session."""
        return self._buffer.drain()

    def _advance(self) -> list[Step] | None:
        if self._state is _State.STARTUP:
            packet = self._buffer.next_startup(_STARTUP_LIMIT)
            return None if packet is None else self._startup(packet)
        frame = self._buffer.next()
        if frame is None:
            return None
        if self._state is _State.SASL_FIRST:
            return self._sasl_first(frame.body)
        return self._sasl_final(frame.body)

    def _startup(self, packet: bytes) -> list[Step]:
        code: int = _CODE.unpack_from(packet)[0]
        if code in (_SSL, _GSS):
            return self._encryption(code, packet)
        if code == _CANCEL:
            if not 8 < len(packet) <= 264:
                raise ProtocolViolation("invalid cancel request")
            self._state = _State.DONE
            reader = Reader(packet[4:])
            return [Cancel(reader.int32(), reader.rest())]
        if code >> 16 != 3:
            return [self._reject(fatal("0A000", "only protocol version 3 is spoken here"))]
        if self.require_tls and not self.encrypted:
            hint = "connect with sslmode=require or stronger"
            return [self._reject(fatal("28000", "connections must be encrypted", hint))]
        return self._begin(code & 0xFFFF, _startup_parameters(packet[4:]))

    def _encryption(self, code: int, packet: bytes) -> list[Step]:
        if len(packet) != 4 or code in self._asked or self.encrypted:
            raise ProtocolViolation("unexpected encryption request")
        self._asked.add(code)
        if code == _SSL and self.offer_tls:
            if len(self._buffer):
                # Bytes in clear behind the request would pass as if they came through TLS.
                raise ProtocolViolation("data follows the encryption request")
            self._state = _State.TLS
            return [Send(b"S"), StartTls()]
        return [Send(b"N")]

    def _begin(self, minor: int, parameters: dict[str, str]) -> list[Step]:
        user = parameters.pop("user", "")
        database = parameters.pop("database", "") or user
        if not user:
            return [self._reject(fatal("28000", "no user name was given"))]
        if parameters.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
            return [self._reject(fatal("0A000", "replication is not offered"))]
        unknown = [name for name in parameters if name.startswith("_pq_.")]
        settings = {k: v for k, v in parameters.items() if not k.startswith("_pq_.")}
        steps: list[Step] = []
        if minor > _NEWEST_MINOR or unknown:
            steps.append(Send(negotiate_version(min(minor, _NEWEST_MINOR), unknown)))
        self._client = Authenticated(user, database, settings, min(minor, _NEWEST_MINOR))
        self._exchange = self.scram(user)
        self._state = _State.SASL_FIRST
        return [*steps, Send(authentication_sasl(self._exchange.mechanisms))]

    def _sasl_first(self, body: bytes) -> list[Step]:
        reader = Reader(body)
        mechanism, data = reader.string(), reader.value()
        reader.end()
        if self._exchange is None or data is None:
            raise ScramFailure
        reply = self._exchange.first(mechanism, data)
        self._state = _State.SASL_FINAL
        return [Send(authentication_continue(reply))]

    def _sasl_final(self, body: bytes) -> list[Step]:
        if self._exchange is None or self._client is None:
            raise ScramFailure
        proof = self._exchange.final(body)
        self._state = _State.DONE
        return [Send(authentication_final(proof) + authentication_ok()), self._client]

    def _reject(self, report: Report, authentication: bool = False) -> Rejected:
        self._state = _State.DONE
        return Rejected(report, authentication)


def _startup_parameters(body: bytes) -> dict[str, str]:
    reader, parameters = Reader(body), {}
    while name := reader.string():
        if name in parameters:
            raise ProtocolViolation("a startup parameter is given twice")
        parameters[name] = reader.string()
    reader.end()
    return parameters
