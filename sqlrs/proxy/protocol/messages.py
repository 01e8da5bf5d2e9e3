"""Messages of the client after its authentication: bytes of a frame to a dataclass."""

from __future__ import annotations

from sqlrs.proxy.protocol.codec import Frame, FrameLimits, ProtocolViolation, Reader
from sqlrs.records import dataclass

# Everything but statements and parameter values is short.
_SMALL = 4096


def session_limits(max_message: int) -> FrameLimits:
    """The messages that a client may send once it is authenticated."""
    large = dict.fromkeys((b"Q", b"P", b"B", b"F", b"d"), max_message)
    small = dict.fromkeys((b"D", b"E", b"C", b"S", b"H", b"X", b"c", b"f"), _SMALL)
    return FrameLimits(large | small)


@dataclass(frozen=True)
class SimpleQuery:
    """A simple query: one or more statements."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """Prepare a statement under a name; the empty name is replaced each time."""

    name: str
    sql: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True)
class Bind:
    """Give a prepared statement its parameters: the result is a portal."""

    portal: str
    statement: str
    formats: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()


@dataclass(frozen=True)
class Describe:
    """Ask for the types of a statement (S) or portal (P)."""

    kind: bytes
    name: str


@dataclass(frozen=True)
class Execute:
    """Run a portal; ``max_rows`` 0 means all rows."""

    portal: str
    max_rows: int = 0


@dataclass(frozen=True)
class Close:
    """Forget a statement (S) or portal (P)."""

    kind: bytes
    name: str


@dataclass(frozen=True)
class Sync:
    """End of a pipeline: errors stop being skipped here."""


@dataclass(frozen=True)
class Flush:
    """Send what is ready."""


@dataclass(frozen=True)
class Terminate:
    """The client says good-bye."""


@dataclass(frozen=True)
class FunctionCall:
    """The old fast path to call a function by its number: always refused."""


@dataclass(frozen=True)
class CopyMessage:
    """Data for a COPY that never started: ignored, as PostgreSQL does."""


Message = (
    SimpleQuery
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | Terminate
    | FunctionCall
    | CopyMessage
)

# A statement has fewer tokens than twice as many; reading many more keeps everybody waiting.
_MAX_VALUES = 5000
_EMPTY: dict[bytes, Message] = {b"S": Sync(), b"H": Flush(), b"X": Terminate()}


def decode(frame: Frame) -> Message:
    """The message in a frame; a body that is not exactly that message is a violation."""
    reader = Reader(frame.body)
    message = _decode(frame.kind, reader)
    reader.end()
    return message


def _decode(kind: bytes, reader: Reader) -> Message:
    match kind:
        case b"Q":
            return SimpleQuery(reader.string())
        case b"P":
            name, sql = reader.string(), reader.string()
            return Parse(name, sql, reader.uint32s())
        case b"B":
            portal, statement = reader.string(), reader.string()
            formats = _formats(reader)
            return Bind(portal, statement, formats, _values(reader), _formats(reader))
        case b"D":
            return Describe(_target(reader), reader.string())
        case b"E":
            return Execute(reader.string(), max(0, reader.int32()))
        case b"C":
            return Close(_target(reader), reader.string())
        case b"F":
            reader.rest()
            return FunctionCall()
        case b"d" | b"c" | b"f":
            reader.rest()
            return CopyMessage()
        case _ if kind in _EMPTY:
            return _EMPTY[kind]
    raise ProtocolViolation("unexpected message type")


def _formats(reader: Reader) -> tuple[int, ...]:
    formats = reader.int16s()
    if not set(formats) <= {0, 1}:
        raise ProtocolViolation("unknown format code")
    return formats


def _values(reader: Reader) -> tuple[bytes | None, ...]:
    count = reader.count16()
    if count > _MAX_VALUES:
        raise ProtocolViolation("more parameters than a statement can have")
    return tuple(reader.value() for _ in range(count))


def _target(reader: Reader) -> bytes:
    kind = reader.take(1)
    if kind not in (b"S", b"P"):
        raise ProtocolViolation("neither a statement nor a portal")
    return kind
