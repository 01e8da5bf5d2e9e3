"""Declared sizes -> how many rows the largest join of a release can have, before it is charged.

Everything here is public: the query, the keys, and sizes that the owner declares. A refusal that
rests on it tells nothing about the data. docs/planner.md says what the bound is and is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from sqlrs.catalog import Table
from sqlrs.planning.bags import Grouping, Input, Join
from sqlrs.planning.choose import choose
from sqlrs.planning.leaves import Picked, TableRows
from sqlrs.planning.plan import Factorised, join_text
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import Query, Variable
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sensitivity.agm import agm_bound

Figures = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class DeclaredSizes:
    """What the owner says of the sizes: rows by table, rows with one value by table.column.

    ``most``: a release that may need a join of more rows is refused.
    """

    rows: Figures = ()
    degrees: Figures = ()
    most: int | None = None

    def rows_of(self, table: Table) -> int | None:
        """At most so many rows, or None if nothing is declared."""
        return _declared(self._rows, table)

    def degree(self, table: Table, column: str) -> int | None:
        """At most so many rows with one value of a column."""
        return _declared(self._degrees, table, f".{column}")

    def statistics(self, query: Query) -> Statistics:
        """The worst that is allowed, so that a plan is chosen which is safe rather than likely."""
        rows, columns = {}, {}
        for atom in query.atoms:
            table = atom.table
            size = self.rows_of(table)
            if size is None:
                continue
            rows[table.identity] = float(size)
            for name, _ in atom.terms:
                if frozenset({name}) not in table.keys:
                    most = self.degree(table, name) or size
                    worst = Repetition(max(size / most, 1.0), float(size * most), float(most))
                    columns[table.identity, name] = worst
        return Statistics(rows, columns)

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return dict(self.rows)

    @cached_property
    def _degrees(self) -> Mapping[str, int]:
        return dict(self.degrees)


NOTHING_DECLARED = DeclaredSizes()


def _declared(said: Mapping[str, int], table: Table, behind: str = "") -> int | None:
    """What is said of a table under its label, or under its name alone."""
    return said.get(f"{table.label}{behind}", said.get(f"{table.name}{behind}"))


@dataclass(frozen=True)
class LargestJoin:
    """The join with the largest bound: its rows, the residual that needs it, and the join."""

    rows: int
    residual: Residual
    join: str


def undeclared(query: Query, declared: DeclaredSizes) -> list[str]:
    """The tables without a declared size: with one of them there is no bound."""
    return sorted({a.table.label for a in query.atoms if declared.rows_of(a.table) is None})


def largest_join(
    residuals: Residuals, wanted: Iterable[Members], declared: DeclaredSizes
) -> LargestJoin | None:
    """The largest join of the count and the wanted residuals, None where a size is unknown."""
    query = residuals.query
    if undeclared(query, declared):
        return None
    parts = representatives(residuals.undecided(wanted)).values()
    statistics = declared.statistics(query)
    found = [
        LargestJoin(rows, residual, text)
        for residual in (residuals.of(query.everything), *parts)
        for rows, text in _joins(residual, statistics, declared)
    ]
    return max(found, key=lambda one: one.rows)


def refuse_too_large(
    residuals: Residuals, wanted: Iterable[Members], declared: DeclaredSizes
) -> None:
    """Refuse a query of which the declared sizes allow a join beyond the owner's limit."""
    if declared.most is None:
        return
    found = largest_join(residuals, wanted, declared)
    if found is not None and found.rows > declared.most:
        raise refusal(
            "too_large_join",
            f"with the declared sizes a join of up to {found.rows:,} rows is needed, more than "
            f"the {declared.most:,} that the data owner allows: {found.join}",
        )


def _joins(
    residual: Residual, statistics: Statistics, declared: DeclaredSizes
) -> Iterator[tuple[int, str]]:
    """The bound of every join of a residual's plan, in the order in which it is joined."""
    plan = choose(residual, statistics, how="factorised")
    if not isinstance(plan, Factorised):
        rows = [TableRows.of(atom, residual.query.never_null) for atom in residual.atoms]
        yield from _prefixes(Join(tuple(rows)), declared)
        return
    for term in plan.total.terms:
        for join in (*(step.join for step in term.join.steps), term.join):
            yield from _prefixes(join, declared)


def _prefixes(join: Join, declared: DeclaredSizes) -> Iterator[tuple[int, str]]:
    inputs = [_relation(one, declared) for one in join.inputs]
    for number in range(1, len(inputs) + 1):
        yield join_bound(inputs[:number]), join_text(join)


@dataclass(frozen=True)
class JoinInput:
    """An input of a join: its variables, most rows, keys, and most rows with one value."""

    variables: frozenset[Variable]
    rows: int
    keys: tuple[frozenset[Variable], ...] = ()
    degrees: Mapping[Variable, int] = field(default_factory=dict)

    def most(self, known: frozenset[Variable]) -> int:
        """At most so many rows agree on the known variables."""
        if any(key <= known for key in self.keys):
            return 1
        return min([self.rows, *(n for v, n in self.degrees.items() if v in known)])


def join_bound(relations: Sequence[JoinInput]) -> int:
    """No join of these has more rows: degrees along an order, or a fractional cover.

    Proof: docs/proofs/plans.md, section 10.
    """
    by_degrees = min(_along(relations, first) for first in range(len(relations)))
    # Rows without a key may be there several times: each is told apart by a variable of its own.
    edges = [
        r.variables if any(key <= r.variables for key in r.keys) else r.variables | {object()}
        for r in relations
    ]
    return min(by_degrees, agm_bound(edges, [max(r.rows, 1) for r in relations]).ceiling())


def _along(relations: Sequence[JoinInput], first: int) -> int:
    left = list(relations)
    start = left.pop(first)
    product, known = start.rows, start.variables
    while left:
        factor, place = min((r.most(known), i) for i, r in enumerate(left))
        known |= left.pop(place).variables
        product *= factor
    return product


def _relation(one: Input, declared: DeclaredSizes) -> JoinInput:
    if isinstance(one, Grouping):
        inputs = [_relation(below, declared) for below in one.join.inputs]
        return JoinInput(one.keep, join_bound(inputs), (one.keep,))
    if isinstance(one, Picked):
        raise AssertionError("a factorised plan picks nothing")
    rows = declared.rows_of(one.table)
    assert rows is not None
    degrees = {
        v: most for c, v in one.columns if (most := declared.degree(one.table, c)) is not None
    }
    return JoinInput(one.variables, rows, one.keys, degrees)
