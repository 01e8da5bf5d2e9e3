"""Messages of the server: dataclasses and values to bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlrs.errors import SqlrsError
from sqlrs.proxy.protocol.codec import Reader, cstring, int16, int32, pack, sized
from sqlrs.records import dataclass

INT8 = 20
TEXT = 25
PARSE_COMPLETE = pack(b"1")
BIND_COMPLETE = pack(b"2")
PORTAL_SUSPENDED = pack(b"s")
EMPTY_QUERY = pack(b"I")
_CODE = re.compile(r"sqlrs code: ([a-z_]{1,40})")
# Bytes of the types that have a fixed number of them.
_SIZES = {16: 1, 20: 8, 21: 2, 23: 4, 700: 4, 701: 8, 1082: 4, 1083: 8, 1114: 8, 1184: 8, 2950: 16}


@dataclass(frozen=True)
class Report:
    """The fields of an ErrorResponse or NoticeResponse."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None

    def encode(self) -> bytes:
        """The message: N for notices and below, E for errors."""
        kind = b"N" if self.severity in ("NOTICE", "INFO", "WARNING") else b"E"
        fields = [
            (b"S", self.severity),
            (b"V", self.severity),
            (b"C", self.sqlstate),
            (b"M", self.message),
            (b"D", self.detail),
            (b"H", self.hint),
            (b"P", None if self.position is None else str(self.position)),
        ]
        present = [code + cstring(_clean(text)) for code, text in fields if text is not None]
        return pack(kind, *present, b"\0")

    def fatal(self) -> Report:
        """The same report, after which the connection ends."""
        return replace(self, severity="FATAL")


def error(sqlstate: str, message: str, hint: str | None = None) -> Report:
    """An error of the proxy itself."""
    return Report("ERROR", sqlstate, message, hint=hint)


def fatal(sqlstate: str, message: str, hint: str | None = None) -> Report:
    """An error that ends the connection."""
    return Report("FATAL", sqlstate, message, hint=hint)


def from_exception(problem: SqlrsError, *, positions: bool = True, offset: int = 0) -> Report:
    """A refusal or failure of sqlrs; its code is the detail, its span the position."""
    position = None
    if positions and problem.span is not None:
        position = offset + problem.span.start + 1
    detail = f"sqlrs code: {problem.code}"
    return Report("ERROR", problem.sqlstate, problem.message, detail, problem.hint, position)


def shift_position(body: bytes, offset: int) -> bytes:
    """An error of the shadow about one statement of several: its position in the whole text."""
    reader, fields = Reader(body), []
    while (code := reader.take(1)) != b"\0":
        text = reader.raw_string()
        if code == b"P" and offset:
            text = str(int(text) + offset).encode()
        fields.append(code + cstring(text))
    return pack(b"E", *fields, b"\0")


def report_fields(body: bytes) -> dict[str, str]:
    """The fields of an error or notice body, by their one-letter codes."""
    reader, fields = Reader(body), {}
    while (code := reader.take(1)) != b"\0":
        fields[code.decode("ascii")] = reader.raw_string().decode("utf-8", "replace")
    return fields


def code_of(fields: Mapping[str, str]) -> str:
    """By what a refusal is counted: the code of sqlrs, or the SQLSTATE of an error of others."""
    own = _CODE.fullmatch(fields.get("D", ""))
    return own[1] if own else fields.get("C", "")


def ready(status: bytes) -> bytes:
    """ReadyForQuery: idle (I), in a transaction (T) or in a failed one (E)."""
    return pack(b"Z", status)


def command_complete(tag: str) -> bytes:
    """CommandComplete with its tag."""
    return pack(b"C", cstring(tag))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """One row."""
    return pack(b"D", int16(len(values)), *(sized(value) for value in values))


def parameter_status(name: str, value: str) -> bytes:
    """A setting that clients follow."""
    return pack(b"S", cstring(name), cstring(value))


def key_data(process: int, secret: bytes) -> bytes:
    """What a client needs to cancel."""
    return pack(b"K", int32(process), secret)


def negotiate_version(newest_minor: int, unknown_options: Sequence[str]) -> bytes:
    """The newest protocol version spoken here and the options that are not known."""
    options = b"".join(cstring(name) for name in unknown_options)
    return pack(b"v", int32((3 << 16) | newest_minor), int32(len(unknown_options)), options)


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    """Which SASL mechanisms are offered."""
    return pack(b"R", int32(10), *(cstring(name) for name in mechanisms), b"\0")


def authentication_continue(data: bytes) -> bytes:
    """The server's first SCRAM message."""
    return pack(b"R", int32(11), data)


def authentication_final(data: bytes) -> bytes:
    """The server's last SCRAM message."""
    return pack(b"R", int32(12), data)


def authentication_ok() -> bytes:
    """The client is who it says."""
    return pack(b"R", int32(0))


def encode_int8(value: int, binary: bool) -> bytes:
    """An int8 result; answers beyond its range, which noise can reach, are clamped."""
    clamped = max(-(2**63), min(2**63 - 1, value))
    return clamped.to_bytes(8, "big", signed=True) if binary else str(clamped).encode("ascii")


@dataclass(frozen=True)
class ResultColumn:
    """One column of a RowDescription."""

    name: bytes
    type_oid: int


def read_row_description(body: bytes) -> tuple[ResultColumn, ...]:
    """The columns that the shadow describes."""
    reader, columns = Reader(body), []
    for _ in range(reader.count16()):
        name = reader.raw_string()
        reader.take(6)
        columns.append(ResultColumn(name, reader.uint32()))
        reader.take(8)
    reader.end()
    return tuple(columns)


def count_description(name: bytes, binary: bool) -> bytes:
    """RowDescription of a count: one int8 column of no table."""
    return row_description((ResultColumn(name, INT8),), (int(binary),))


def row_description(columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    """RowDescription of columns of no table; one format is that of all, none is text."""
    each = list(formats) * len(columns) if len(formats) == 1 else formats or [0] * len(columns)
    described = (
        cstring(column.name)
        + int32(0)
        + int16(0)
        + int32(column.type_oid)
        + int16(_SIZES.get(column.type_oid, -1))
        + int32(-1)
        + int16(code)
        for column, code in zip(columns, each, strict=True)
    )
    return pack(b"T", int16(len(columns)), *described)


def read_parameter_types(body: bytes) -> tuple[int, ...]:
    """The parameter types that the shadow found."""
    reader = Reader(body)
    types = tuple(reader.uint32() for _ in range(reader.count16()))
    reader.end()
    return types


def read_data_row(body: bytes) -> tuple[bytes | None, ...]:
    """The values of one row of the shadow."""
    reader = Reader(body)
    values = tuple(reader.value() for _ in range(reader.count16()))
    reader.end()
    return values


def _clean(text: str) -> str:
    # A zero byte would end the field early; the text may quote what the analyst sent.
    return text.replace("\0", "")
