"""Messages that the proxy sends to the shadow on its own behalf or rebuilt from the client's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from sqlrs.ledger import PrivacyBudget
from sqlrs.proxy.backend import SHOWN_CHARACTERS, HistoryRow, TextRow
from sqlrs.proxy.protocol.codec import cstring, int16, int32, pack, sized
from sqlrs.proxy.protocol.messages import Bind, Close, Describe, Execute, Parse
from sqlrs.proxy.protocol.replies import TEXT, ResultColumn
from sqlrs.refusals import refusal
from sqlrs.templates import template

_CARRIED = {
    16: "boolean",
    20: "bigint",
    21: "smallint",
    23: "integer",
    25: "text",
    700: "real",
    701: "double precision",
    1042: "text",
    1043: "text",
    1082: "date",
    1083: "time",
    1114: "timestamp",
    1184: "timestamptz",
    1700: "numeric",
    2950: "uuid",
}
SYNC = pack(b"S")
FLUSH = pack(b"H")


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


def write_budget(
    name: str, remaining: Decimal | None, own: PrivacyBudget | None
) -> tuple[bytes, int]:
    """Make the analyst's budget visible to this session of the shadow."""
    text = "unlimited" if remaining is None else f"{remaining:f}"
    terms = {}
    if own is not None:
        terms = {
            "cap": f"{own.cap:f}",
            "spent": f"{own.counted:f}",
            "lifetime": f"{own.spent:f}",
            "renews": own.renews_at and own.renews_at.isoformat(),
            "expires": own.expires and own.expires.isoformat(),
        }
    return once(name, template("proxy/write_budget.sql"), (text, json.dumps(terms)))


def write_history(name: str, rows: Sequence[HistoryRow]) -> tuple[bytes, int]:
    """Make the analyst's own charges visible to this session of the shadow."""
    content = [
        {
            "time": row.time.isoformat(),
            "sql": row.sql[:SHOWN_CHARACTERS],
            "epsilon": f"{row.epsilon:f}",
            "status": row.status,
            "answer": None if row.answer is None else str(row.answer),
            "low": None if row.interval is None else str(row.interval[0]),
            "high": None if row.interval is None else str(row.interval[1]),
        }
        for row in rows
    ]
    return once(
        name, template("proxy/write_history.sql"), (json.dumps(content, ensure_ascii=False),)
    )


def carry_rows(
    name: str,
    portal: str,
    columns: Sequence[ResultColumn],
    rows: Sequence[TextRow],
    formats: Sequence[int],
) -> tuple[bytes, int]:
    """Open a portal of the client's whose rows are given: the shadow gives them their wire form.

    The statement has a name of the proxy's; a portal outlives the next statement of that name.
    """
    names = [f"c{number}" for number in range(len(columns))]
    shown = ", ".join(
        f"{own} AS {_quoted(column.name)}" for own, column in zip(names, columns, strict=True)
    )
    kinds = ", ".join(
        f"{own} {_carried_type(column)}" for own, column in zip(names, columns, strict=True)
    )
    sql = template("proxy/carry_rows.sql").replace("column_kinds", kinds)
    sql = sql.replace("column_list", shown)
    content = json.dumps([dict(zip(names, row, strict=True)) for row in rows], ensure_ascii=False)
    data = b"".join(
        (
            close(Close(b"S", name)),
            parse(Parse(name, sql)),
            bind(Bind(portal, name, (), (content.encode("utf-8"),), tuple(formats))),
        )
    )
    return data, 3


def carried(columns: Sequence[ResultColumn]) -> tuple[ResultColumn, ...]:
    """The columns as ``carry_rows`` gives them, or a refusal of a type that it does not know."""
    for column in columns:
        _carried_type(column)
    return tuple(
        ResultColumn(one.name, TEXT if _CARRIED[one.type_oid] == "text" else one.type_oid)
        for one in columns
    )


def _carried_type(column: ResultColumn) -> str:
    kind = _CARRIED.get(column.type_oid)
    if kind is None:
        raise refusal(
            "unsupported",
            "a column has a type that cannot be read here",
            hint="leave it out of the SELECT list",
        )
    return kind


def _quoted(name: bytes) -> str:
    return exp.to_identifier(name.decode("utf-8"), quoted=True).sql(dialect="postgres")


def _formats(codes: Sequence[int]) -> bytes:
    return len(codes).to_bytes(2, "big") + b"".join(int16(code) for code in codes)
