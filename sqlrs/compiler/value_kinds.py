"""Kinds of values above the cuts, as PostgreSQL tells them apart."""

from __future__ import annotations

from enum import IntEnum, auto

from sqlglot import exp

_T = exp.DType
_INT4 = 2**31
_INT8 = 2**63


class ValueKind(IntEnum):
    """Kinds of values. Numbers come in the order in which one gives way to the next."""

    INTEGER = auto()
    BIGINT = auto()
    NUMERIC = auto()
    QUOTIENT = auto()
    """Numeric in PostgreSQL, a double in DuckDB: what a division or an average gives."""
    DOUBLE = auto()
    TEXT = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    TIME = auto()
    INTERVAL = auto()
    UUID = auto()
    UNKNOWN = auto()
    """NULL, or a text that takes on the kind of what it meets."""

    @property
    def number(self) -> bool:
        """Whether it is one of the kinds of numbers."""
        return self <= ValueKind.DOUBLE


TYPES: dict[exp.DType, ValueKind] = {
    **dict.fromkeys((_T.SMALLINT, _T.INT), ValueKind.INTEGER),
    _T.BIGINT: ValueKind.BIGINT,
    _T.DECIMAL: ValueKind.NUMERIC,
    **dict.fromkeys((_T.DOUBLE, _T.FLOAT), ValueKind.DOUBLE),
    **dict.fromkeys((_T.TEXT, _T.VARCHAR), ValueKind.TEXT),
    _T.BOOLEAN: ValueKind.BOOLEAN,
    _T.DATE: ValueKind.DATE,
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPNTZ), ValueKind.TIMESTAMP),
    _T.TIME: ValueKind.TIME,
    _T.UUID: ValueKind.UUID,
}
"""The kinds of the types that a cast names."""
_OF_DUCKDB: dict[exp.DType, ValueKind] = {
    **TYPES,
    **dict.fromkeys((_T.TINYINT, _T.UTINYINT, _T.USMALLINT), ValueKind.INTEGER),
    **dict.fromkeys((_T.UINT,), ValueKind.BIGINT),
    **dict.fromkeys((_T.INT128, _T.UBIGINT), ValueKind.NUMERIC),
}


def kind_of_type(name: str) -> ValueKind:
    """The kind of a column of the released relations, by DuckDB's name of its type."""
    return _OF_DUCKDB.get(exp.DataType.build(name, "duckdb").this, ValueKind.UNKNOWN)


def kind_of_literal(node: exp.Literal) -> ValueKind:
    """The kind of a number or a text that stands in a statement."""
    if node.is_string:
        return ValueKind.UNKNOWN
    text = str(node.this)
    if not text.isdigit():
        return ValueKind.NUMERIC
    number = int(text) if len(text) < 40 else _INT8
    return (
        ValueKind.INTEGER
        if number < _INT4
        else ValueKind.BIGINT
        if number < _INT8
        else ValueKind.NUMERIC
    )
