"""What the units contribute, by one statement: how many stand at each place, and their sums."""

from __future__ import annotations

from collections.abc import Sequence

from sqlrs.engines.base import Snapshot, integer_rows
from sqlrs.errors import EngineFailed
from sqlrs.measures import Contributions, KeyDomain, Ordinals, Signed
from sqlrs.planning.by_group import by_group
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Variable
from sqlrs.residuals.residual import Residual
from sqlrs.sql.by_place import contributions_by_place
from sqlrs.sql.rows_by_owner import OwnedTerm, Source


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
) -> Contributions:
    """Run the statement."""
    statement = contributions_by_place(source, domains, grid, dialect)
    places = len(grid) + 1
    units, below = [0] * places, [0] * places
    totals: dict[Ordinals, list[int]] = {}
    for place, *ordinals, here, negative, total in integer_rows(snapshot.rows(statement)):
        if not 0 <= place < places:
            raise EngineFailed("the database found a place that is not there")
        units[place] += here
        below[place] += negative
        if min(ordinals, default=0) >= 0:
            totals.setdefault(tuple(ordinals), [0] * places)[place] += total
    sums = {group: tuple(numbers) for group, numbers in totals.items()}
    return Contributions(tuple(grid), tuple(units), tuple(below), sums)
