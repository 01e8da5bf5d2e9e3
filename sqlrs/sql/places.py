"""Compared values as places on a line: whole numbers where a next value exists, else by rank.

A discrete value stands at its own number, which has room beyond the first and the last value of the
type and beyond the infinities, so that a step never overflows and always leads to another place.
docs/proofs/external.md says why that is the type's order and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from enum import Enum

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.query import Constant, Term, Variable
from sqlrs.trees.build import ascending, grouped_by, inner, named, number, select_from
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import column
from sqlrs.trees.predicates import Places
from sqlrs.values import INFINITE_DAY, values_of

_EPOCH = date(1970, 1, 1)
_ROOM = 10**37
_LARGEST = 2**127 - 1


class Scale(Enum):
    """How the values of one order become places."""

    NUMBERS = "discrete: a number each, with room to step beyond them all"
    WIDE = "whole numbers that fill the engine's largest type"
    DENSE = "no next value: only the order is known"


def scale_of(terms: Iterable[Term]) -> Scale:
    """The scale that holds all terms of one order, from their types alone."""
    kinds = [values_of(term.type) for term in terms]
    if not all(values.discrete for values in kinds):
        return Scale.DENSE
    roomy = all(
        v.first is not None and v.last is not None and -_ROOM < v.first <= v.last < _ROOM
        for v in kinds
    )
    return Scale.NUMBERS if roomy else Scale.WIDE


def number_of(value: exp.Expression, kind: ColumnType) -> exp.Expression:
    """The number of a discrete value, in a type in which no step overflows."""
    if kind.family is Family.INTEGER:
        return exp.cast(value, "DECIMAL(38, 0)")
    assert kind.family is Family.DATE
    return day_number(value)


def day_number(value: exp.Expression) -> exp.Expression:
    """Days since 1970-01-01; an infinite date is beyond all others, as ``INFINITE_DAY`` says."""
    epoch = exp.cast(exp.Literal.string(_EPOCH.isoformat()), "date")
    finite = exp.Anonymous(this="ISFINITE", expressions=[value.copy()])
    days = exp.Sub(this=value.copy(), expression=epoch)
    late = exp.GT(this=value.copy(), expression=epoch.copy())
    # PostgreSQL has no difference with an infinite date, and counts days in 32 bits.
    cases = exp.Case().when(finite, days).when(late, number(INFINITE_DAY))
    return exp.cast(cases.else_(number(-INFINITE_DAY)), "bigint")


def constant_number(value: object) -> int | Decimal:
    """The number of a constant that is a number or a day."""
    if isinstance(value, date):
        return (value - _EPOCH).days
    assert isinstance(value, int | Decimal)
    return value


def number_of_term(term: Term, places: Places) -> exp.Expression:
    """The number of a discrete variable or constant."""
    if isinstance(term, Variable):
        return number_of(places[term].copy(), term.type)
    if term.type.family is Family.DATE:
        return number(int(constant_number(term.value)))
    return number_of(literal(term), term.type)


def value_of_term(term: Term, places: Places, scale: Scale) -> exp.Expression:
    """The value itself, to be compared by the engine."""
    value = places[term].copy() if isinstance(term, Variable) else literal(term)
    return exp.cast(value, exp.DataType.Type.INT128) if scale is Scale.WIDE else value


def moved(place: exp.Expression, by: int) -> exp.Expression:
    """A place some steps further."""
    if by == 0:
        return place
    kind = exp.Add if by > 0 else exp.Sub
    return kind(this=place, expression=number(abs(by)))


def greatest(first: exp.Expression, *rest: exp.Expression) -> exp.Expression:
    """The greatest of several numbers, none of which is null."""
    return exp.Greatest(this=first, expressions=list(rest), ignore_nulls=True) if rest else first


def least(first: exp.Expression, *rest: exp.Expression) -> exp.Expression:
    """The least of several numbers, none of which is null."""
    return exp.Least(this=first, expressions=list(rest), ignore_nulls=True) if rest else first


def extreme(values: list[exp.Expression], side: int) -> exp.Expression:
    """The greatest (side 1) or least (side -1) of several values by the engine's own comparisons.

    Not by GREATEST and LEAST, which in DuckDB know nothing of collations.
    """
    different = list(dict.fromkeys(values))
    kind = exp.GTE if side > 0 else exp.LTE
    *others, last = different
    if not others:
        return last
    cases = exp.Case()
    for i, value in enumerate(others):
        beyond = [
            kind(this=value.copy(), expression=other.copy())
            for other in (*different[:i], *different[i + 1 :])
        ]
        cases = cases.when(exp.and_(*beyond), value.copy())
    return cases.else_(last.copy())


def stepped(
    value: exp.Expression, phase: exp.Expression, side: int
) -> tuple[exp.Expression, exp.Expression]:
    """The place beside a wide number as the next number, where there is one.

    Beyond the last one it stays a place of its own, which the phase says.
    """
    inside = (
        exp.LT(this=value.copy(), expression=number(_LARGEST))
        if side > 0
        else exp.GT(this=value.copy(), expression=number(-_LARGEST))
    )
    beside = exp.EQ(this=phase.copy(), expression=number(side))
    moves = exp.and_(beside, inside)
    return (
        exp.Case().when(moves, moved(value.copy(), side)).else_(value.copy()),
        exp.Case().when(moves.copy(), number(0)).else_(phase.copy()),
    )


def ranked(values: exp.Expression, scale: Scale, room: int) -> exp.Select:
    """Each different ``value`` of a query once, with a ``place`` that leaves ``room`` below it.

    Neighbours are ``room + 1`` apart, or as far as they are if fewer whole numbers lie between.
    """
    source = exp.Subquery(
        this=values, alias=exp.TableAlias(this=exp.to_identifier("active_values"))
    )
    different = inner(
        grouped_by(select_from(source, column("value")), [column("value")]), "different_values"
    )
    if scale is Scale.DENSE:
        rank = exp.Window(this=exp.DenseRank(), order=_by_value())
        place = exp.Mul(this=number(room + 1), expression=rank)
        return select_from(different, column("value"), named(place, "place"))
    lag = exp.Window(this=exp.Lag(this=column("value")), order=_by_value())
    pairs = select_from(different, column("value"), named(lag, "value_before"))
    total = exp.Window(this=exp.Sum(this=_gap(room + 1)), order=_by_value())
    return select_from(inner(pairs, "neighbours"), column("value"), named(total, "place"))


def _gap(most: int) -> exp.Expression:
    """The distance to the value before, at most ``most``; numbers of both signs cannot overflow."""
    value, before = column("value"), column("value_before")
    near = exp.Sub(
        this=least(value.copy(), number(most)),
        expression=greatest(before.copy(), number(-most)),
    )
    across = exp.and_(
        exp.GTE(this=value.copy(), expression=number(0)),
        exp.LT(this=before.copy(), expression=number(0)),
    )
    apart = exp.Case().when(across, near).else_(exp.Sub(this=value, expression=before.copy()))
    capped = least(apart, number(most))
    first = exp.Is(this=before.copy(), expression=exp.Null())
    return exp.Case().when(first, number(most)).else_(capped)


def below_all(terms: Iterable[Term], scale: Scale, steps: int) -> int:
    """A place below all values of one order, with room for ``steps`` places above it."""
    if scale is not Scale.NUMBERS:
        return 0
    lowest = 0
    for term in terms:
        if isinstance(term, Constant):
            lowest = min(lowest, int(constant_number(term.value)))
        else:
            first = values_of(term.type).first
            assert first is not None
            lowest = min(lowest, int(first))
    # One more for -infinity, which stands a day before the first date.
    return lowest - steps - 2


def _by_value() -> exp.Order:
    return exp.Order(expressions=[ascending(column("value"))])
