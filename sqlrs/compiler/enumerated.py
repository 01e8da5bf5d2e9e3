"""Finitely many public values as a relation of one column: lists, ranges, columns of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import cast

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family, Table, Value
from sqlrs.compiler.flat import not_null
from sqlrs.query import Constant
from sqlrs.records import dataclass
from sqlrs.trees.build import filtered_by, inner, named, number, select_from, table_of, union_of
from sqlrs.trees.constants import data_type, literal
from sqlrs.trees.identifiers import column, identifier
from sqlrs.values import values_of

MOST_ENUMERATED = 1_000_000
"""No range with more values is written out."""
SERIES = "generate_series"
"""The function of both engines that counts from one whole number to another."""

_VALUE = "v"
_UNKNOWN_COLLATION = "unknown"


@dataclass(frozen=True, eq=False)
class Enumerated:
    """Values as a statement with the one column v; ``most`` bounds their number where it is known.

    ``origin`` says in words why nothing else can occur.
    """

    select: exp.Select
    most: int | None
    origin: str

    def filtered(self, conditions: Sequence[exp.Expr]) -> Enumerated:
        """Those on which all conditions hold, which are written over ``value_of("d")``."""
        if not conditions:
            return self
        rows = select_from(inner(self.select.copy(), "d"), value_of("d"))
        return replace(self, select=limited(rows, conditions))

    def with_null(self) -> Enumerated:
        """These and NULL, which comes last so that it takes on the type of the others."""
        return together([self, _null(self.origin)])


def output(tree: exp.Expr, name: str) -> exp.Alias:
    """A copy of any expression under a name."""
    return named(cast(exp.Expression, tree.copy()), name)


def limited(select: exp.Select, conditions: Sequence[exp.Expr]) -> exp.Select:
    """The same select, which has no WHERE yet, with copies of all conditions."""
    return filtered_by(select, [cast(exp.Expression, one.copy()) for one in conditions])


def value_of(relation: str) -> exp.Column:
    """The column of values of a relation."""
    return column(_VALUE, relation)


def constants(values: Iterable[exp.Expr], origin: str) -> Enumerated:
    """A list of constants, as the engine makes one type of them all."""
    rows = [
        # What stands somewhere already stays there; of thousands of new ones no copy is made.
        exp.Tuple(expressions=[value if value.parent is None else value.copy()])
        for value in values
    ]
    if not rows:
        return none(origin)
    if all(isinstance(row.expressions[0], exp.Null) for row in rows):
        return _null(origin)
    alias = exp.TableAlias(this=identifier("l"), columns=[identifier(_VALUE)])
    return Enumerated(
        select_from(exp.Values(expressions=rows, alias=alias), value_of("l")), len(rows), origin
    )


def none(origin: str) -> Enumerated:
    """No value at all."""
    nothing = exp.Select(expressions=[named(exp.Null(), _VALUE)])
    return Enumerated(filtered_by(nothing, [exp.false()]), 0, origin)


def _null(origin: str) -> Enumerated:
    """NULL without a type: out of a list it would be a text."""
    return Enumerated(exp.Select(expressions=[named(exp.Null(), _VALUE)]), 1, origin)


def whole_numbers(low: int, high: int, kind: ColumnType, origin: str) -> Enumerated:
    """All whole numbers between two, both included, in a column's type."""
    value = exp.cast(column("i", "g"), data_type(kind))
    return _counted(low, high, value, origin)


def days(low: date, high: date, origin: str, kind: str | None = None) -> Enumerated:
    """All days between two, both included, as dates or, at their beginning, in another type."""
    # A date and a whole number: a series of dates would be one of timestamps in the session's zone.
    value: exp.Expr = exp.Add(
        this=exp.cast(exp.Literal.string(low.isoformat()), "date"),
        expression=exp.cast(column("i", "g"), "int"),
    )
    if kind is not None:
        value = exp.cast(value, kind)
    return _counted(0, (high - low).days, value, origin)


def clock_times(first: datetime, count: int, unit: str, origin: str) -> Enumerated:
    """So many moments without a zone, each an hour or a minute behind the one before."""
    step = exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit.upper()))
    value = exp.Add(
        this=exp.cast(exp.Literal.string(first.isoformat(" ")), "timestamp"),
        expression=exp.Mul(this=exp.cast(column("i", "g"), "int"), expression=step),
    )
    return _counted(0, count - 1, value, origin)


def counted_from(low: exp.Expr, high: exp.Expr, most: int, origin: str) -> Enumerated:
    """Every number that lies whole steps above ``low`` and not above ``high``, in their type."""
    value = exp.Add(this=low.copy(), expression=exp.cast(column("i", "g"), "int"))
    found = _counted(0, most - 1, value, origin)
    return found.filtered([exp.LTE(this=value_of("d"), expression=high.copy())])


def referred_values(table: Table, name: str, origin: str) -> Enumerated:
    """What stands in a column of a public table beside NULL."""
    if table.private:
        raise ValueError(f"{table.label} is private")
    select = select_from(table_of(table, "t"), named(column(name, "t"), _VALUE))
    select.set("distinct", exp.Distinct())
    limited(select, [not_null(column(name, "t"))])
    return Enumerated(select, None, origin)


def computed(
    expression: exp.Expr,
    over: Sequence[tuple[str, Enumerated]],
    conditions: Sequence[exp.Expr],
    origin: str,
) -> Enumerated:
    """The distinct values of an expression over the values of relations with names."""
    (alias, first), *rest = over
    select = select_from(inner(first.select.copy(), alias), output(expression, _VALUE))
    for alias, other in rest:
        select.append("joins", exp.Join(this=inner(other.select.copy(), alias), kind="CROSS"))
    select.set("distinct", exp.Distinct())
    limited(select, conditions)
    most: int | None = 1
    for _, one in over:
        most = None if most is None or one.most is None else most * one.most
    return Enumerated(select, most, origin)


def together(parts: Sequence[Enumerated]) -> Enumerated:
    """The values of all parts."""
    if len(parts) == 1:
        return parts[0]
    sizes = [part.most for part in parts]
    most = None if None in sizes else sum(size for size in sizes if size is not None)
    union = union_of([part.select.copy() for part in parts])
    select = select_from(
        exp.Subquery(this=union, alias=exp.TableAlias(this=identifier("u"))), value_of("u")
    )
    return Enumerated(select, most, "; ".join(dict.fromkeys(part.origin for part in parts)))


def listed_values(values: Iterable[Value], kind: ColumnType, dialect: str) -> list[exp.Expr] | None:
    """Those values that the type holds, in that very type; None if it has no name here."""
    held = values_of(kind).holds
    found = [
        in_type(literal(Constant(value, kind)), kind, dialect)
        for value in values
        if not isinstance(value, int | Decimal) or held(value)
    ]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def in_type(tree: exp.Expr, kind: ColumnType, dialect: str) -> exp.Expr | None:
    """A literal in the type, and under the collation, of a column; None where that has no name."""
    if kind.collation == _UNKNOWN_COLLATION or kind.family is Family.OPAQUE:
        return None
    if isinstance(tree, exp.Boolean) or (isinstance(tree, exp.Cast) and not kind.collation):
        return tree
    if isinstance(tree, exp.Neg):
        tree = exp.Paren(this=tree)
    # Not exp.cast: it copies what it is given, and reads the type anew.
    value: exp.Expr = exp.Cast(this=tree, to=_type_named(kind, dialect).copy())
    if kind.collation is not None:
        value = exp.Collate(this=value, expression=exp.to_column(kind.collation, dialect=dialect))
    return value


@lru_cache(maxsize=64)
def _type_named(kind: ColumnType, dialect: str) -> exp.DataType:
    if values_of(kind).padded:
        # character without a length would cut every text to its first letter.
        return exp.DataType.build("bpchar", dialect="postgres")
    if kind.family is Family.OTHER:
        return exp.DataType.build(kind.name, dialect=dialect, udt=True)
    return data_type(kind)


def _counted(low: int, high: int, value: exp.Expr, origin: str) -> Enumerated:
    size = max(0, high - low + 1)
    if size > MOST_ENUMERATED:
        raise ValueError("too many values to be written out")
    alias = exp.TableAlias(this=identifier("g"), columns=[identifier("i")])
    series = exp.Anonymous(this=SERIES, expressions=[number(low), number(high)])
    select = select_from(exp.Table(this=series, alias=alias), output(value, _VALUE))
    return Enumerated(select, size, origin)
