"""What a count's function measures, in rounds: large residuals first, then what still matters.

All rounds are one statement, so that all see one snapshot. A later round is evaluated only where
limits of its values do not settle the sensitivity: docs/proofs/procedures.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.measuring.work import Work
from sqlrs.query import Atom, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sql.index_order import in_index_order
from sqlrs.trees.build import (
    filtered_by,
    grouped_by,
    inner,
    named,
    number,
    select_from,
    table_of,
)
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS
from sqlrs.values import behave_alike

# A table's column, or the table itself: the most rows with one value, or all rows.
Frequency = tuple[Table, str | None]
# Of each factor the frequencies of which the least counts.
Limit = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class StagedMeasure:
    """Residuals by rounds, the count being the very first, and the limits of all later rounds.

    A limit is a product; each factor is the least of the frequencies at its places, counted
    from 1.
    """

    rounds: tuple[tuple[Residual, ...], ...]
    frequencies: tuple[exp.Select, ...]
    limits: tuple[Limit, ...]

    @classmethod
    def of(cls, residuals: Residuals, wanted: tuple[Members, ...]) -> StagedMeasure:
        """The rounds of a release, with limits for all but the first one."""
        rounds = [tuple(parts) for parts in Work(residuals, wanted, None).rounds() if parts]
        # The count is asked for whatever the sensitivity is.
        whole = residuals.query.everything
        first = sorted(rounds[0], key=lambda part: part.members != whole)
        known: dict[Frequency, int] = {}
        limits = tuple(_limit(part, known) for parts in rounds[1:] for part in parts)
        return cls(
            rounds=(tuple(first), *rounds[1:]),
            frequencies=tuple(_frequency(*one) for one in known),
            limits=limits,
        )

    @property
    def places(self) -> Mapping[Members, int]:
        """Where the value of each residual stands, counted from 1."""
        parts = (part.members for parts in self.rounds for part in parts)
        return {members: place for place, members in enumerate(parts, 1)}


def _limit(residual: Residual, known: dict[Frequency, int]) -> Limit:
    """What T_E does not exceed; the atoms are joined in an order that the query alone decides."""
    joined = residual.query.never_null
    reached = residual.boundary
    left = list(residual.atoms)
    factors = []
    while left:
        options = [_matching(atom, reached, joined) for atom in left]
        place = min(range(len(left)), key=lambda i: _priority(options[i]))
        atom = left.pop(place)
        if options[place]:
            factors.append(
                tuple(known.setdefault(one, len(known) + 1) for one in sorted_once(options[place]))
            )
        reached |= atom.variables
    return tuple(factors)


def _matching(
    atom: Atom, reached: frozenset[Variable], joined: frozenset[Variable]
) -> list[Frequency]:
    """What bounds the rows of an atom that agree on the variables: nothing if a key makes it 1."""
    if any(key <= reached for key in atom.keys):
        return []
    # Only joined variables are never NULL, and frequencies leave NULL out.
    columns = [
        name
        for name, term in atom.terms
        if term in reached
        and term in joined
        and atom.table.column(name).computed is None
        and behave_alike([atom.table.column(name).type])
    ]
    return [(atom.table, name) for name in columns] or [(atom.table, None)]


def sorted_once(frequencies: list[Frequency]) -> list[Frequency]:
    """Each once, in one order."""
    return sorted(set(frequencies), key=lambda one: (one[0].label, one[1] or ""))


def _priority(options: list[Frequency]) -> int:
    """Keys first, then columns, whole tables last."""
    if not options:
        return 0
    return 2 if options[0][1] is None else 1


def _frequency(table: Table, name: str | None) -> exp.Select:
    """The number of rows, or the most with one value in a column."""
    rows = select_from(table_of(table), named(exp.Count(this=exp.Star()), RESULTS))
    if name is None:
        return rows
    own = column(name, table.name)
    there = exp.Not(this=exp.Is(this=own, expression=exp.Null()))
    rows = in_index_order(grouped_by(filtered_by(rows, [there]), [again(own)]), table)
    most = exp.Coalesce(this=exp.Max(this=column(RESULTS, "repeated")), expressions=[number(0)])
    return select_from(inner(rows, "repeated"), named(most, RESULTS))
