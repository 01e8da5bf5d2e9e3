"""Values of a released table as texts of the PostgreSQL types that the shadow found for them.

The shadow says what PostgreSQL would call the columns and their types; the values come from DuckDB.
Whether every value of DuckDB's type has a form in PostgreSQL's is decided before the charge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal

from sqlrs.proxy.backend import TextRow
from sqlrs.refusals import refusal

_INTEGERS = frozenset(
    {f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")}
    | {"HUGEINT", "UHUGEINT"}
)
_NUMBERS = _INTEGERS | {"DECIMAL", "DOUBLE", "FLOAT"}
_MOMENTS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
_BITS = {20: 63, 21: 15, 23: 31}
# PostgreSQL's number of a type, and the types of DuckDB whose every value has a form in it.
_FROM: dict[int, frozenset[str]] = {
    16: frozenset({"BOOLEAN"}),
    20: _INTEGERS,
    21: _INTEGERS,
    23: _INTEGERS,
    25: _NUMBERS | _MOMENTS | {"BOOLEAN", "TIME", "UUID", "VARCHAR"},
    700: _NUMBERS,
    701: _NUMBERS,
    1082: frozenset({"DATE"}),
    1083: frozenset({"TIME"}),
    1114: _MOMENTS,
    1184: _MOMENTS,
    1700: _NUMBERS,
    2950: frozenset({"UUID"}),
}
# What DuckDB calls the type of a column in which nothing but NULL can stand.
_NOTHING = frozenset({"NULL", '"NULL"'})


def check_columns(columns: Sequence[tuple[str, str]], types: Sequence[int]) -> None:
    """Refuse a table whose values have no form in the types that its client was told."""
    if len(columns) != len(types):
        raise refusal("unsupported", "the columns cannot be told in advance")
    for number, ((_, kind), oid) in enumerate(zip(columns, types, strict=True), 1):
        base = kind.partition("(")[0]
        if base not in _NOTHING and base not in _FROM.get(oid, ()):
            raise refusal(
                "unsupported",
                f"column {number} has another type here than in PostgreSQL",
                hint="write a CAST around it",
            )


def text_rows(rows: Sequence[Sequence[object]], types: Sequence[int]) -> tuple[TextRow, ...]:
    """The rows, each value as the text of its type."""
    writers = [_writer(oid) for oid in types]
    return tuple(
        tuple(
            None if value is None else write(value)
            for value, write in zip(row, writers, strict=True)
        )
        for row in rows
    )


def _writer(oid: int) -> Callable[[object], str]:
    if oid not in _BITS:
        return _text
    most = 2 ** _BITS[oid]

    def clamped(value: object) -> str:
        # Noise has no end. A key that the column's own type cannot hold is one of no row.
        return str(max(-most, min(most - 1, int(str(value)))))

    return clamped


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
    # PostgreSQL's texts cannot hold the character of number 0.
    return str(value).replace("\0", "\ufffd")
