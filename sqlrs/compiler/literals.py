"""Literals of a query as Python values; sqlrs.trees.constants writes them again."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from datetime import UTC, date, datetime
from decimal import Decimal

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family, Value
from sqlrs.values import MOMENTS, NUMBERS, values_of

# Python refuses to read integers of thousands of digits.
_INTEGER = re.compile(r"\d{1,40}")
_DECIMAL = re.compile(r"\d+(\.\d*)?|\.\d+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
_WRITTEN_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,6})?)?)?", re.ASCII
)
_ZONED = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:\d\d)?)")
# A number that fits no 64-bit integer is read as another type by one engine or the other.
_LARGEST = 2**63 - 1
# Single precision rounds a literal in one engine and not in the other.
_DOUBLES = frozenset({"double", "double precision", "float8"})
_PLAIN_TIMESTAMPS = (
    None,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ,
    exp.DataType.Type.DATE,
)
_WITH_A_DAY = (*_PLAIN_TIMESTAMPS[1:], exp.DataType.Type.TIMESTAMPTZ)
# How many microseconds lie between two values of DuckDB's coarser timestamps.
_UNITS = {"TIMESTAMP_S": 1_000_000, "TIMESTAMP_MS": 1_000}


def is_literal(node: exp.Expr) -> bool:
    """Whether the node is a value written in the text: a number, a text, a typed text, a truth."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = node.this.unnest()
        return isinstance(inner, exp.Literal) and not inner.is_string
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        return isinstance(node.this, exp.Literal) and not node.to.expressions
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null)


def is_invalid(cast: exp.Cast) -> bool:
    """Whether no engine can read a typed text such as DATE '2024-06-31'.

    False says nothing: what is left is the engine's to judge.
    """
    if type(cast) is not exp.Cast or not (
        isinstance(cast.this, exp.Literal) and cast.this.is_string
    ):
        return False
    text, kind = str(cast.this.this), cast.to.this
    if kind in exp.DataType.INTEGER_TYPES:
        return re.search("[0-9]", text) is None
    if kind is exp.DataType.Type.UUID:
        return len(re.findall("[0-9a-fA-F]", text)) != 32
    if kind not in _WITH_A_DAY:
        return False
    found = _WRITTEN_MOMENT.fullmatch(text)
    if found is None:
        return False
    year, month, day, *clock = (int(part or 0) for part in found.groups())
    # One engine has a year 0; some have an hour 24 and a second 60.
    no_day = year > 0 and not (1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1])
    beyond = any(part > most for part, most in zip(clock, (24, 59, 60), strict=True))
    return no_day or (beyond and kind is not exp.DataType.Type.DATE)


def fits(node: exp.Expr, column: ColumnType) -> bool:
    """Whether a literal is of the kind that the column's family is written as."""
    node, family = node.unnest(), column.family
    if isinstance(node, exp.Null) or family is Family.OTHER:
        return True
    if isinstance(node, exp.Boolean):
        return family is Family.BOOLEAN
    if isinstance(node, exp.Cast):
        return True
    if isinstance(node, exp.Literal) and node.is_string:
        return family in MOMENTS or family is Family.TEXT
    return family in NUMBERS


def readable(literal: exp.Literal, column: ColumnType) -> bool:
    """Whether the engine may be left to read a plain literal set against the column.

    A text set against a date or time must be one that is read alike in every session.
    """
    if column.family is Family.TIMESTAMP:
        return _moment(str(literal.this)) is not None
    return column.family not in MOMENTS


def read(node: exp.Expr, column: ColumnType) -> Value | None:
    """The value of a literal in the column's type, or None if only the engine can say."""
    node = node.unnest()
    target = None
    if isinstance(node, exp.Cast):
        target, node = node.to.this, node.this
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this.unnest()
    if isinstance(node, exp.Boolean):
        return bool(node.this) if column.family is Family.BOOLEAN else None
    if not isinstance(node, exp.Literal):
        return None
    text = str(node.this)
    if not node.is_string:
        return None if target is not None else _number(text, sign, column)
    return _text(text, target, column)


def _moment(text: str) -> datetime | None:
    """A timestamp without a zone in the one form that is read alike everywhere, or None."""
    try:
        return datetime.fromisoformat(text) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        return None


def _number(text: str, sign: int, column: ColumnType) -> Value | None:
    if column.family is Family.INTEGER:
        whole = _whole(text)
        return None if whole is None else sign * whole
    if column.family is Family.DECIMAL:
        return _signed(sign, text) if _DECIMAL.fullmatch(text) and len(text) <= 38 else None
    if column.family is Family.FLOAT and column.name.lower() in _DOUBLES:
        if text.isdigit() and _whole(text) is None:
            # DuckDB reads a type wider than 64 bits, whose conversion to a double rounds twice.
            return None
        # Two spellings of one double are one value.
        number = float(text)
        if number == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
            # Too small for a double: 0 in one engine, an error in the other.
            return None
        return _signed(sign, repr(number)) if math.isfinite(number) else None
    return None


def _whole(text: str) -> int | None:
    """The whole number that every engine reads as a 64-bit integer, or None."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and number <= _LARGEST else None


def _signed(sign: int, text: str) -> Decimal:
    """The number with every digit: a product would keep 28 of them."""
    number = Decimal(text)
    return number.copy_negate() if sign < 0 else number


def _text(text: str, target: exp.DType | None, column: ColumnType) -> Value | None:
    kinds = exp.DataType.Type
    try:
        match column.family:
            case Family.TEXT if target in (None, kinds.TEXT, kinds.VARCHAR):
                # Padding and collations make different texts equal.
                return text if values_of(column).one_form else None
            case Family.DATE if target in (None, kinds.DATE) and _DATE.fullmatch(text):
                return date.fromisoformat(text)
            case Family.TIMESTAMP if target in _PLAIN_TIMESTAMPS:
                if target is kinds.DATE and not _DATE.fullmatch(text):
                    return None
                moment = _moment(text)
                # A plain text is rounded to the column's own precision; a typed one is not.
                unit = _UNITS.get(column.name) if target is None else None
                rounded = unit is not None and moment is not None and moment.microsecond % unit
                return None if rounded else moment
            case Family.TIMESTAMP_TZ if target in (None, kinds.TIMESTAMPTZ):
                if _ZONED.fullmatch(text):
                    return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None
    return None
