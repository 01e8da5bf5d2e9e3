"""What the units contribute: how many stand at each place of the grid, and their sums."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from sqlrs.engines.base import Snapshot, integer_rows
from sqlrs.errors import EngineFailed
from sqlrs.measures import Contributions, KeyDomain, Ordinals, PerUnit, Signed
from sqlrs.planning.by_group import ByGroup, by_group
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Variable
from sqlrs.residuals.residual import Residual
from sqlrs.sql.by_place import contributions_by_place, units_by_number
from sqlrs.sql.rows_by_owner import OwnedTerm, Source
from sqlrs.trees.kept import Kept

_FEW = 10_000
"""So many different numbers are placed here sooner than in the database."""


def owned_term(
    signed: Signed, whole: Residual, statistics: Statistics | None, how: str
) -> OwnedTerm:
    """A term, planned so that results are counted by their owner and by the group keys."""
    terms = {*signed.keys, *signed.owners}
    if len(set(signed.owners)) != 1:
        raise ValueError("only results with one owner are counted by it")
    variables = {term for term in terms if isinstance(term, Variable)}
    return OwnedTerm(signed, by_group(whole, variables, statistics, how=how))


def contributions(
    snapshot: Snapshot,
    source: Source,
    domains: Sequence[KeyDomain],
    grid: Sequence[int],
    dialect: str,
    kept: Kept,
) -> Contributions:
    """Run the statement, or, of one number that has few different values, a shorter one."""
    about: tuple[object, ...] = (source, *domains)
    plans: tuple[ByGroup, ...] = ()
    if not isinstance(source, PerUnit):
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
