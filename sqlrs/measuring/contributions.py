"""What the units contribute: how many stand at each place of the grid, and their sums."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from sqlrs.engines.base import Snapshot, integer_rows, rows_for_good
from sqlrs.errors import EngineFailed
from sqlrs.measures import Contributions, KeyDomain, Ordinals, PerUnit, Signed
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.planning.by_group import ByGroup, by_group
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Variable
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql.by_place import (
    contributions_by_place,
    units_by_number,
    units_near_each_other,
)
from sqlrs.sql.rows_by_owner import OwnedTerm, Source
from sqlrs.trees.kept import Kept

_FEW = 10_000
"""So many different numbers are placed here sooner than in the database."""


def owned_term(
    signed: Signed, whole: Residual, statistics: Statistics | None, how: str
) -> OwnedTerm:
    """A term, planned so that results are counted by their owner and by the group keys."""
    return OwnedTerm(signed, by_group(whole, _counted_by(signed), statistics, how=how))


def planned_term(signed: Signed, residuals: Residuals, evaluator: Evaluator) -> OwnedTerm:
    """The same by what is known of the rows, without lookups that each of them finds."""
    whole = residuals.of(residuals.query.everything)
    smaller = evaluator.reduced(whole, _counted_by(signed))
    return evaluator.once(
        (signed, smaller),
        lambda: owned_term(signed, smaller, evaluator.statistics, evaluator.how),
        "owned",
    )


def _counted_by(signed: Signed) -> frozenset[Variable]:
    """The variables of the group keys and of the owner."""
    if len(set(signed.owners)) != 1:
        raise ValueError("only results with one owner are counted by it")
    terms = (*signed.keys, *signed.owners)
    return frozenset(term for term in terms if isinstance(term, Variable))


def contributions(
    snapshot: Snapshot,
    source: Source,
    domains: Sequence[KeyDomain],
    grid: Sequence[int],
    dialect: str,
    kept: Kept,
) -> Contributions:
    """Run the statement, or, of one number with few different values or sizes, a shorter one."""
    about: tuple[object, ...] = (source, *domains)
    plans: tuple[ByGroup, ...] = ()
    if not isinstance(source, PerUnit):
        if rows_for_good(snapshot) is not None:
            # Then terms are planned once, and are the same objects.
            about = (*source, *domains)
        else:
            about = (*(one.signed for one in source), *domains)
            # Which plan it is depends on the rows, what is kept for a plan does not.
            plans = tuple(one.plan for one in source)
    few = kept.of(
        about,
        lambda: None if domains else units_by_number(source, _FEW + 1, dialect),
        detail=("units", plans),
    )
    if few is not None:
        numbers = integer_rows(snapshot.rows(few))
        if len(numbers) <= _FEW:
            return _read(grid, [_placed(number, units, grid) for number, units in numbers])
    near = kept.of(
        about,
        lambda: None if domains else units_near_each_other(source, grid, dialect),
        detail=("near", plans, tuple(grid)),
    )
    if near is not None:
        placed = [_placed_together(row, grid) for row in integer_rows(snapshot.rows(near))]
        if None not in placed:
            return _read(grid, (row for row in placed if row is not None))
    statement = kept.of(
        about,
        lambda: contributions_by_place(source, domains, grid, dialect),
        detail=("places", plans, tuple(grid)),
    )
    return _read(grid, integer_rows(snapshot.rows(statement)))


def _placed(number: int, units: int, grid: Sequence[int]) -> list[int]:
    """Units that all have one number, as a row of the statement."""
    place = bisect_left(grid, abs(number))
    return [place, units, units if number < 0 else 0, number * units]


def _placed_together(row: Sequence[int], grid: Sequence[int]) -> list[int] | None:
    """Units of nearly the same size as a row of the statement; None: they have several places."""
    least, largest, *rest = row
    place = bisect_left(grid, least)
    return [place, *rest] if bisect_left(grid, largest) == place else None


def _read(grid: Sequence[int], rows: Iterable[Sequence[int]]) -> Contributions:
    places = len(grid) + 1
    units, below = [0] * places, [0] * places
    totals: dict[Ordinals, list[int]] = {}
    for place, *ordinals, here, negative, total in rows:
        if not 0 <= place < places:
            raise EngineFailed("the database found a place that is not there")
        units[place] += here
        below[place] += negative
        if min(ordinals, default=0) >= 0:
            totals.setdefault(tuple(ordinals), [0] * places)[place] += total
    sums = {group: tuple(numbers) for group, numbers in totals.items()}
    return Contributions(tuple(grid), tuple(units), tuple(below), sums)
