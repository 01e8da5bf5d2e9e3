"""The largest counts of a residual, read by the statement that counts groups on the way past it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sqlrs.measures import KeyDomain
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.leading import one_grouping
from sqlrs.query import Term, Variable
from sqlrs.records import dataclass
from sqlrs.sql.factorised import StatementBuilder, StepResult
from sqlrs.sql.grouped import building_for, counts_per_key
from sqlrs.sql.known_groups import Known, located_in_constants
from sqlrs.trees.build import (
    grouped_by,
    named,
    number,
    select_from,
    table_named,
    union_of,
    with_columns,
)
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS

_PART = "part"


def totals_beside_largest(
    whole: ByGroup,
    part: ByGroup,
    keys: Sequence[Term | None],
    domains: Sequence[KeyDomain],
    dialect: str,
    known: Known,
) -> exp.Select | None:
    """Rows (ordinals…, value of the whole query, largest count of the part over all groups).

    None where the part is no step on the way to the whole.
    """
    way = _way_to(whole, part, building_for(whole.residual, domains, dialect))
    if way is None:
        return None
    largest = select_from(table_named(way.part.name), way.largest)
    select = located_in_constants(
        way.building, way.rows, way.names, [RESULTS], keys, domains, known
    )
    return with_columns(select, named(exp.Subquery(this=largest), "largest"))


def largest_beside_totals(
    whole: ByGroup,
    part: ByGroup,
    keys: Sequence[Term | None],
    domains: Sequence[KeyDomain],
    dialect: str,
    known: Known,
) -> exp.Select | None:
    """Rows (ordinals…, 0, value of the whole query) and (ordinals…, 1, largest count of the part).

    None where the part is no step on the way to the whole.
    """
    way = _way_to(whole, part, building_for(whole.residual, domains, dialect))
    if way is None:
        return None
    names = way.names
    held = [column(way.part.columns[v], way.part.name) for v in sorted(names)]
    largest = select_from(
        table_named(way.part.name),
        named(number(1), _PART),
        *(named(again(one), names[v]) for v, one in zip(sorted(names), held, strict=True)),
        named(way.largest, RESULTS),
    )
    total = select_from(
        table_named(way.rows),
        named(number(0), _PART),
        *(column(names[v], way.rows) for v in sorted(names)),
        column(RESULTS, way.rows),
    )
    both = way.building.add("both", union_of([total, grouped_by(largest, held)]))
    return located_in_constants(way.building, both, names, [_PART, RESULTS], keys, domains, known)


@dataclass(frozen=True)
class _Way:
    """A statement in which a part is counted on the way to the whole."""

    building: StatementBuilder
    rows: str
    names: Mapping[Variable, str]
    part: StepResult

    @property
    def largest(self) -> exp.Expression:
        """The largest count of the part among its rows."""
        counted = self.part.counted
        return exp.Max(this=column(RESULTS, self.part.name) if counted else number(1))


def _way_to(whole: ByGroup, part: ByGroup, building: StatementBuilder) -> _Way | None:
    """The steps to the whole, None where the part is not one of them."""
    counted = None if part.total is None or part.factors else one_grouping(part.total)
    if counted is None:
        return None
    rows, names = counts_per_key(whole, building)
    if not building.has(counted):
        return None
    return _Way(building, rows, names, building.step(counted))
