"""Messages that the proxy sends to the shadow on its own behalf or rebuilt from the client's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal

from sqlrs.proxy.backend import HistoryRow
from sqlrs.proxy.codec import cstring, int16, int32, pack, sized
from sqlrs.proxy.messages import Bind, Close, Describe, Execute, Parse
from sqlrs.templates import template

SYNC = pack(b"S")
FLUSH = pack(b"H")
# Of each statement in the history; a thousand long ones would fill the shadow's memory.
_SHOWN_CHARACTERS = 2000


def parse(message: Parse) -> bytes:
    """Parse, as the client sent it."""
    types = b"".join(oid.to_bytes(4, "big") for oid in message.types)
    count = len(message.types).to_bytes(2, "big")
    return pack(b"P", cstring(message.name), cstring(message.sql), count, types)


def bind(message: Bind) -> bytes:
    """Bind, as the client sent it."""
    return pack(
        b"B",
        cstring(message.portal),
        cstring(message.statement),
        _formats(message.formats),
        len(message.values).to_bytes(2, "big"),
        *(sized(value) for value in message.values),
        _formats(message.result_formats),
    )


def describe(message: Describe) -> bytes:
    """Describe, as the client sent it."""
    return pack(b"D", message.kind, cstring(message.name))


def execute(message: Execute) -> bytes:
    """Execute, as the client sent it."""
    return pack(b"E", cstring(message.portal), int32(message.max_rows))


def close(message: Close) -> bytes:
    """Close, as the client sent it."""
    return pack(b"C", message.kind, cstring(message.name))


def fail(missing: str) -> bytes:
    """A message that fails, so that the shadow's transaction fails as the client's did."""
    return bind(Bind(missing, missing))


def once(name: str, sql: str, values: Sequence[str | None] = ()) -> tuple[bytes, int]:
    """Run one statement of the proxy under its own name; how many closing frames to expect."""
    encoded = tuple(None if value is None else value.encode("utf-8") for value in values)
    data = b"".join(
        (
            parse(Parse(name, sql)),
            bind(Bind(name, name, values=encoded)),
            execute(Execute(name)),
            close(Close(b"P", name)),
            close(Close(b"S", name)),
        )
    )
    return data, 5


def read_settings(name: str) -> tuple[bytes, int]:
    """Ask for the settings that a release depends on."""
    return once(name, template("proxy/read_settings.sql"))


def write_budget(name: str, remaining: Decimal | None) -> tuple[bytes, int]:
    """Make the analyst's budget visible to this session of the shadow."""
    text = "unlimited" if remaining is None else f"{remaining:f}"
    return once(name, template("proxy/write_budget.sql"), (text,))


def write_history(name: str, rows: Sequence[HistoryRow]) -> tuple[bytes, int]:
    """Make the analyst's own charges visible to this session of the shadow."""
    content = [
        {
            "time": row.time.isoformat(),
            "sql": row.sql[:_SHOWN_CHARACTERS],
            "epsilon": f"{row.epsilon:f}",
            "status": row.status,
            "answer": None if row.answer is None else str(row.answer),
        }
        for row in rows
    ]
    return once(name, template("proxy/write_history.sql"), (json.dumps(content),))


def _formats(codes: Sequence[int]) -> bytes:
    return len(codes).to_bytes(2, "big") + b"".join(int16(code) for code in codes)
