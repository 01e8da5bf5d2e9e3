"""What a schema says about the values of a column: CHECK constraints, enumerations, foreign keys.

A constraint holds unless it is false, so each part of a conjunction holds by itself, of NULL too. A
part of any other form than those read here says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from sqlrs.catalog import (
    Bounds,
    Column,
    ColumnType,
    Family,
    Listed,
    PublicDomain,
    Range,
    Referred,
    Value,
)
from sqlrs.dialects import dialect_named
from sqlrs.engines.constraint_literals import EXACT, KINDS, TEXTS, literal_value, without_casts
from sqlrs.records import dataclass
from sqlrs.values import NUMBERS, values_of

# A range of more days or numbers is no list of groups; then a foreign key says more.
_FEW = 10_000
# The casts of a column that change no value.
_SAME = {
    Family.INTEGER: EXACT,
    Family.DECIMAL: frozenset({KINDS.DECIMAL}),
    Family.FLOAT: frozenset({KINDS.DOUBLE}),
    Family.TEXT: TEXTS,
}
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}


@dataclass(frozen=True)
class CheckText:
    """The text of a CHECK. ``value_of``: the column whose type has it, as VALUE stands there.

    ``origin``: where it stands, in words.
    """

    text: str
    value_of: str | None = None
    origin: str | None = None


def described(
    table: str,
    columns: Iterable[Column],
    dialect: str,
    *,
    checks: Iterable[CheckText] = (),
    referred: Mapping[str, Referred] | None = None,
) -> tuple[Column, ...]:
    """The columns with what their types, the checks and the foreign keys say of their values."""
    known = {column.name: _Known(column) for column in columns}
    for check in checks:
        for name, fact, values in _facts(check, known, dialect):
            known[name].learn(fact, values, check.origin or f"CHECK of {table}.{name}")
    return tuple(one.column_with((referred or {}).get(name)) for name, one in known.items())


@dataclass
class _Known:
    """What is known so far of the values of one column."""

    column: Column
    listed: tuple[Value, ...] | None = None
    low: Any = None
    high: Any = None
    origins: list[str] = field(default_factory=list)

    def learn(self, fact: type[exp.Expr], values: Sequence[Value], origin: str) -> None:
        if fact is exp.In:
            before = values if self.listed is None else self.listed
            self.listed = tuple(v for v in dict.fromkeys(before) if v in values)
        elif not self.learn_end(fact, values[0]):
            return
        if origin not in self.origins:
            self.origins.append(origin)

    def learn_end(self, fact: type[exp.Expr], value: Any) -> bool:
        """Learn one end of a range; whether the type has such."""
        family = self.column.type.family
        if family is Family.INTEGER:
            value = _whole_end(fact, value)
        elif family is Family.DATE:
            try:
                value += timedelta(days=(fact is exp.GT) - (fact is exp.LT))
            except OverflowError:
                return False
        elif family not in NUMBERS:
            return False
        if fact in (exp.GT, exp.GTE):
            self.low = value if self.low is None else max(self.low, value)
        else:
            self.high = value if self.high is None else min(self.high, value)
        return True

    def column_with(self, referred: Referred | None) -> Column:
        listed, column, origin = self._listed(), self.column, " and ".join(self.origins)
        low, high = self.low, self.high
        if listed and column.type.family in NUMBERS:
            low, high = min(listed), max(listed)
        ranged = low is not None and high is not None
        if listed == () or (ranged and low > high):
            # All values are NULL; nobody asks for more about such a column.
            return column
        found: PublicDomain | None = referred or column.domain
        if listed and column.type.family is not Family.FLOAT:
            found = Listed(listed, origin)
        elif (
            ranged
            and column.type.family in (Family.INTEGER, Family.DATE)
            and (referred is None or _size(low, high) <= _FEW)
        ):
            found = Range(low, high, origin)
        bounds = column.bounds
        if ranged and column.type.family in NUMBERS:
            bounds = Bounds(Decimal(low), Decimal(high), origin)
        return replace(column, domain=found, bounds=bounds)

    def _listed(self) -> tuple[Value, ...] | None:
        """The listed values that the column can hold, within the range."""
        if self.listed is None:
            return None
        kind, labels = self.column.type, self.column.domain
        return tuple(
            value
            for value in self.listed
            if (self.low is None or self.low <= value)
            and (self.high is None or value <= self.high)
            and holds(kind, value)
            and (not isinstance(labels, Listed) or value in labels.values)
        )


def holds(kind: ColumnType, value: Value) -> bool:
    """Whether a column of the type can hold a number as it is; other values are not looked at."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    if kind.family is Family.INTEGER and value != int(value):
        return False
    about = values_of(kind)
    if isinstance(about.last, Decimal) and _decimals(Decimal(value)) > _decimals(about.last):
        return False
    return about.holds(value)


def _decimals(value: Decimal) -> int:
    """How many digits stand behind the point, zeros at the end aside."""
    _, digits, exponent = value.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return -int(exponent) - zeros


def _size(low: Any, high: Any) -> int:
    distance = high - low
    return 1 + (distance.days if isinstance(distance, timedelta) else int(distance))


def _whole_end(fact: type[exp.Expr], value: int | Decimal) -> int:
    """The first or last whole number that a comparison with any number admits."""
    if fact is exp.GT:
        return math.floor(value) + 1
    if fact is exp.LT:
        return math.ceil(value) - 1
    return math.ceil(value) if fact is exp.GTE else math.floor(value)


def _facts(
    check: CheckText, known: Mapping[str, _Known], dialect: str
) -> Iterator[tuple[str, type[exp.Expr], list[Value]]]:
    """What the text says: of which column, IN or a comparison, and with which values."""
    try:
        pending = [parse_one(check.text, dialect=dialect)]
    except (SqlglotError, RecursionError):
        return
    column_of = _finder(check, known, dialect)
    while pending:
        part = pending.pop().unnest()
        if type(part) is exp.And:
            pending += [part.expression, part.this]
        else:
            yield from _atom(part, column_of, dialect)


def _finder(
    check: CheckText, known: Mapping[str, _Known], dialect: str
) -> Callable[[exp.Expr], Column | None]:
    """Which column a part of the text is, if it is one as it stands."""
    folded = dialect_named(dialect).folded
    names = {folded(name, quoted=True): one.column for name, one in known.items()}
    if check.value_of is not None:
        names = {folded("VALUE", quoted=False): known[check.value_of].column}

    def column_of(node: exp.Expr) -> Column | None:
        inner, casts = without_casts(node)
        if type(inner) is not exp.Column or len(inner.parts) != 1:
            return None
        name = inner.this
        column = names.get(folded(name.name, quoted=bool(name.args.get("quoted"))))
        if column is None or not casts <= _SAME.get(column.type.family, frozenset()):
            return None
        return column

    return column_of


def _atom(
    node: exp.Expr, column_of: Callable[[exp.Expr], Column | None], dialect: str
) -> Iterator[tuple[str, type[exp.Expr], list[Value]]]:
    """One condition on one column."""
    asked: list[tuple[exp.Expr, type[exp.Expr], list[exp.Expr]]] = []
    kind, given = type(node), {name for name, value in node.args.items() if value}
    if kind is exp.Between and given == {"this", "low", "high"}:
        asked = [
            (node.this, exp.GTE, [node.args["low"]]),
            (node.this, exp.LTE, [node.args["high"]]),
        ]
    elif kind is exp.In and given == {"this", "expressions"}:
        asked = [(node.this, exp.In, node.expressions)]
    elif kind in _MIRRORED and given == {"this", "expression"}:
        left, right, fact = node.this, node.expression, kind
        if column_of(left) is None:
            left, right, fact = right, left, _MIRRORED[kind]
        several = _any_of(right) if kind is exp.EQ else None
        fact = exp.In if kind is exp.EQ else fact
        asked = [(left, fact, [right] if several is None else several)]
    for place, fact, literals in asked:
        column = column_of(place)
        if column is not None:
            values = [literal_value(one, column, dialect) for one in literals]
            if not any(value is None for value in values):
                yield column.name, fact, [value for value in values if value is not None]


def _any_of(node: exp.Expr) -> list[exp.Expr] | None:
    """The members of ANY (ARRAY[…]), which PostgreSQL writes for IN, or None."""
    if type(node) is not exp.Any:
        return None
    array = node.this.unnest()
    if type(array) is exp.Cast and array.to.this is KINDS.ARRAY:
        (inner,) = array.to.expressions
        if inner.this not in TEXTS or inner.expressions:
            return []
        array = array.this.unnest()
    return list(array.expressions) if type(array) is exp.Array else []
