"""What conditions say of an expression's values: = and IN give lists, comparisons give ranges."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family, Range, Value
from sqlrs.compiler.enumerated import (
    MOST_ENUMERATED,
    Enumerated,
    clock_times,
    constants,
    days,
    in_type,
    listed_values,
    none,
    whole_numbers,
)
from sqlrs.compiler.grounds import Grounds
from sqlrs.compiler.literals import is_literal, read
from sqlrs.records import dataclass
from sqlrs.values import values_of

_BOUNDS: dict[type[exp.Expr], tuple[bool, bool]] = {
    # Whether it bounds from below, and whether the bound itself is left out.
    exp.GT: (True, True),
    exp.GTE: (True, False),
    exp.LT: (False, True),
    exp.LTE: (False, False),
}
_AS_WRITTEN = frozenset({Family.TEXT, Family.OTHER, Family.FLOAT})
# The engines count in 64 bits.
_LARGEST = 2**63 - 1
_DAY = timedelta(days=1)
_STEPS = {"hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_NO_ZONE = Family.TIMESTAMP
_FIRST, _LAST = date.min + _DAY, date.max - _DAY


@dataclass(frozen=True)
class Ends:
    """Bounds of whole numbers, days or moments, both included; None where there is none."""

    low: Value | None = None
    high: Value | None = None

    @property
    def closed(self) -> bool:
        """Whether it ends on both sides: no infinite value lies in it, and NULL neither."""
        return self.low is not None and self.high is not None


def listed(
    grounds: Grounds, forms: Collection[exp.Expr], kind: ColumnType | None
) -> Enumerated | None:
    """The shortest list to which the query limits an expression, which has these forms."""
    found = [
        one for condition in grounds.conditions if (one := _list(condition, forms, kind, grounds))
    ]
    return min(found, key=lambda one: one.most or 0, default=None)


def bounded(
    grounds: Grounds,
    forms: Collection[exp.Expr],
    kind: ColumnType,
    declared: Collection[Range] = (),
) -> Ends:
    """Between which values an expression lies, by the query's conditions and the schema."""
    lows: list[Value] = []
    highs: list[Value] = []
    for condition in grounds.conditions:
        bound = _BOUNDS.get(type(condition))
        if bound is None or condition.this.unnest() not in forms:
            continue
        value = read(condition.expression, kind) if is_literal(condition.expression) else None
        if value is not None:
            from_below, strict = bound
            (lows if from_below else highs).append(_inside(value, from_below, strict, kind))
    for one in declared:
        lows.append(one.low)
        highs.append(one.high)
    lows, highs = ([one for one in found if _comparable(one, kind)] for found in (lows, highs))
    return Ends(max(lows, default=None), min(highs, default=None))


def enumerated(ends: Ends, kind: ColumnType, origin: str) -> Enumerated | None:
    """All values of an interval of whole numbers or days, if they are not too many."""
    low, high = ends.low, ends.high
    if low is None or high is None:
        return None
    if kind.family is Family.INTEGER and isinstance(low, int) and isinstance(high, int):
        values = values_of(kind)
        low = low if values.first is None else max(low, int(values.first))
        high = high if values.last is None else min(high, int(values.last))
        if low > high:
            return none(origin)
        if high - low < MOST_ENUMERATED and max(-low, high) <= _LARGEST:
            return whole_numbers(low, high, kind, origin)
    if kind.family is Family.DATE and isinstance(low, date) and isinstance(high, date):
        if low > high:
            return none(origin)
        if (high - low).days < MOST_ENUMERATED:
            return days(low, high, origin)
    return None


def touched(ends: Ends, unit: str, kind: ColumnType, origin: str) -> Enumerated | None:
    """The beginnings of all days, hours or minutes that moments of an interval fall in."""
    low, high = ends.low, ends.high
    if not isinstance(low, datetime) or not isinstance(high, datetime):
        return None
    if low > high:
        return none(origin)
    if unit != "day":
        return _touched_on_clocks(low, high, unit, origin) if kind.family is _NO_ZONE else None
    first, last = low.date(), high.date()
    name = "timestamp"
    if kind.family is Family.TIMESTAMP_TZ:
        # Which day it is depends on the session's zone.
        first, last, name = max(first, _FIRST) - _DAY, min(last, _LAST) + _DAY, "timestamptz"
    if (last - first).days >= MOST_ENUMERATED:
        return None
    return days(first, last, origin, name)


def _touched_on_clocks(low: datetime, high: datetime, unit: str, origin: str) -> Enumerated | None:
    """Hours or minutes. Without a zone: in some zones hours begin when others are half over."""
    first = low.replace(minute=0 if unit == "hour" else low.minute, second=0, microsecond=0)
    count = (high - first) // _STEPS[unit] + 1
    return clock_times(first, count, unit, origin) if count <= MOST_ENUMERATED else None


def _list(
    condition: exp.Expr, forms: Collection[exp.Expr], kind: ColumnType | None, grounds: Grounds
) -> Enumerated | None:
    """The values that a condition leaves, if it is = or IN with literals, or OR of such."""
    values: list[exp.Expr] = []
    words = ""
    for part in _alternatives(condition):
        found = _equated(part, forms)
        if found is None:
            return None
        words = words or found[0]
        for literal in found[1]:
            if isinstance(literal, exp.Null):
                continue
            if not is_literal(literal):
                return None
            value = _value(literal, kind, grounds.catalog.dialect)
            if value is None:
                return None
            values += value
    return constants(dict.fromkeys(values), f"{words} of the query")


def _alternatives(condition: exp.Expr) -> Iterator[exp.Expr]:
    pending = [condition]
    while pending:
        part = pending.pop().unnest()
        if isinstance(part, exp.Or):
            pending += [part.expression, part.this]
        else:
            yield part


def _equated(condition: exp.Expr, forms: Collection[exp.Expr]) -> tuple[str, list[exp.Expr]] | None:
    match condition:
        case exp.In() if condition.this.unnest() in forms and condition.expressions:
            return "IN (…)", [one.unnest() for one in condition.expressions]
        case exp.EQ():
            left, right = condition.this.unnest(), condition.expression.unnest()
            if right in forms:
                left, right = right, left
            if left not in forms:
                return None
            if isinstance(right, exp.Any):
                array = right.this.unnest()
                listing = isinstance(array, exp.Array)
                return ("IN (…)", [one.unnest() for one in array.expressions]) if listing else None
            return "=", [right]
    return None


def _value(node: exp.Expr, kind: ColumnType | None, dialect: str) -> list[exp.Expr] | None:
    """The literal as a value of the type, none if no value equals it; None: only the engine knows.

    What is rounded to the type is left out by the condition itself, which is tried on each value.
    """
    if kind is None:
        # A plain text would take on a type that is not known here.
        plain = isinstance(node, exp.Literal) and node.is_string
        return None if plain else [node.copy()]
    value = read(node, kind)
    if value is not None:
        return listed_values([value], kind, dialect)
    if kind.family is Family.OTHER and isinstance(node, exp.Cast):
        return [node.copy()]
    if kind.family not in _AS_WRITTEN or isinstance(node, exp.Cast | exp.Boolean):
        return None
    tree = in_type(node.copy(), kind, dialect)
    return None if tree is None else [tree]


def _inside(value: Value, from_below: bool, strict: bool, kind: ColumnType) -> Value:
    """The bound that is included, for types whose values have next ones."""
    step = 1 if from_below else -1
    if not strict:
        return value
    try:
        if isinstance(value, datetime):
            return value + step * timedelta(microseconds=1)
        if isinstance(value, date):
            return value + step * _DAY
    except OverflowError:
        # One value too many does no harm: each is tried on the condition.
        return value
    if isinstance(value, int) and kind.family is Family.INTEGER:
        return value + step
    return value


def _comparable(value: Value, kind: ColumnType) -> bool:
    """Whether the bound is of the one Python type that stands for the family's values."""
    match kind.family:
        case Family.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        case Family.DECIMAL | Family.FLOAT:
            number = isinstance(value, Decimal) and value.is_finite()
            return number or (isinstance(value, int) and not isinstance(value, bool))
        case Family.DATE:
            return isinstance(value, date) and not isinstance(value, datetime)
        case Family.TIMESTAMP:
            return isinstance(value, datetime) and value.tzinfo is None
        case Family.TIMESTAMP_TZ:
            return isinstance(value, datetime) and value.tzinfo is not None
    return False
