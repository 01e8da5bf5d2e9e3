"""Literals in the texts of constraints as values of a column, where nothing is rounded."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from sqlglot import exp

from sqlrs.catalog import Column, ColumnType, Family, Listed, Value
from sqlrs.values import NUMBERS, values_of

# Longer numbers are read as other types, some of them rounded.
_NUMBER = re.compile(r"(-?)(\d{1,19}|\d{0,19}\.\d{0,19})", re.ASCII)
_DOUBLE = re.compile(r"(-?)(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
KINDS = exp.DataType.Type
_WHOLE = frozenset({KINDS.SMALLINT, KINDS.INT, KINDS.BIGINT})
EXACT = _WHOLE | {KINDS.DECIMAL}
_FLOATING = frozenset({KINDS.DOUBLE, KINDS.FLOAT})
TEXTS = frozenset({KINDS.TEXT, KINDS.VARCHAR})


def without_casts(node: exp.Expr) -> tuple[exp.Expr, set[object]]:
    """What stands inside parentheses and casts, and the casts' types; with a size: as a text."""
    casts: set[object] = set()
    node = node.unnest()
    while type(node) is exp.Cast:
        casts.add(node.to.sql() if node.to.expressions else node.to.this)
        node = node.this.unnest()
    return node, casts


def literal_value(node: exp.Expr, column: Column, dialect: str) -> Value | None:
    """The literal as a value of the column's kind, or None."""
    kind = column.type
    if kind.family in NUMBERS:
        number = _number(node, floating=kind.family is Family.FLOAT)
        whole = number is not None and kind.family is Family.INTEGER and number == int(number)
        return int(number) if number is not None and whole else number
    literal, casts = without_casts(node)
    if not (isinstance(literal, exp.Literal) and literal.is_string):
        return None
    text = str(literal.this)
    if kind.family is Family.TEXT:
        return text if casts <= TEXTS else None
    if kind.family is Family.DATE:
        return _date(text) if casts <= {KINDS.DATE} else None
    if values_of(kind).padded and kind.collation is None:
        return text.rstrip(" ") if casts <= {KINDS.BPCHAR} else None
    if isinstance(column.domain, Listed) and _is_enumerated(node, kind, casts, dialect):
        return text
    return None


def _is_enumerated(node: exp.Expr, kind: ColumnType, casts: set[object], dialect: str) -> bool:
    """Whether a text becomes a value of the column's own enumeration."""
    if not casts:
        return True
    cast = node.unnest()
    own = cast.args["to"].args.get("kind")
    return len(casts) == 1 and own is not None and own.sql(dialect) == kind.name


def _number(node: exp.Expr, *, floating: bool) -> Decimal | None:
    """A number with every digit, through casts that change nothing; None for all others."""
    node = node.unnest()
    if type(node) is exp.Neg:
        inner = _number(node.this, floating=floating)
        return None if inner is None else inner.copy_negate()
    if type(node) is exp.Cast:
        if node.to.expressions or node.to.this not in (EXACT | _FLOATING if floating else EXACT):
            return None
        literal = node.this.unnest()
        if isinstance(literal, exp.Literal) and literal.is_string:
            inner = _written(str(literal.this), floating=floating)
        else:
            inner = _number(literal, floating=floating)
        rounded = inner is not None and node.to.this in _WHOLE and inner != int(inner)
        return None if rounded else inner
    if isinstance(node, exp.Literal) and not node.is_string:
        return _written(str(node.this), floating=floating)
    return None


def _written(text: str, *, floating: bool) -> Decimal | None:
    form = _DOUBLE if floating else _NUMBER
    return Decimal(text) if form.fullmatch(text) and re.search("[0-9]", text) else None


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None
