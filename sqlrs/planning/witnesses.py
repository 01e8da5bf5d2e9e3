"""Distinct outputs by the rows that they decide: of the other rows it only matters that one exists.

An order with a late line counts once, however many late lines it has: the order's row is counted,
a line is its witness. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from dataclasses import replace

from sqlrs.compiler.forms import tells_equal_values_apart
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.query import Predicate, Query, Variable, closure
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual


@dataclass(frozen=True)
class Witnessed:
    """The atoms whose rows are counted, and the others in groups of which each must be met."""

    counted: Members
    groups: tuple[Members, ...]


def witnessed(residual: Residual) -> Witnessed | None:
    """How distinct outputs are counted as rows; None where they decide too few rows for that."""
    if (
        residual.output is None
        or residual.external
        or residual.weighted
        or any(map(tells_equal_values_apart, residual.generals))
    ):
        return None
    query = residual.query
    needed = residual.output | residual.boundary
    counted = closure(query, residual.members, needed)[1]
    held = query.variables(counted)
    if not counted or not needed <= held:
        return None
    return Witnessed(counted, _groups(residual, residual.members - counted, held))


def by_keys(residual: Residual, found: Witnessed) -> bool:
    """Whether no join has more rows than one table, and every witness is found by equal values."""
    query = residual.query
    held = query.variables(found.counted)
    return all(
        joins_by_keys([query.atoms[i] for i in sorted(members)])
        for members in (found.counted, *found.groups)
    ) and not any(held.isdisjoint(query.variables(group)) for group in found.groups)


def part_of(residual: Residual, members: Members, held: frozenset[Variable]) -> Residual:
    """Some atoms of a residual with the predicates on the held variables alone."""
    return replace(
        residual,
        members=members,
        inequalities=frozenset(p for p in residual.inequalities if p.variables <= held),
        comparisons=frozenset(p for p in residual.comparisons if p.variables <= held),
        generals=tuple(p for p in residual.generals if p.variables <= held),
    )


def predicates_of(residual: Residual, found: Witnessed, group: Members) -> list[Predicate]:
    """The predicates that a group of witnesses has to meet."""
    held = residual.query.variables(found.counted)
    own = residual.query.variables(group) - held
    return [p for p in residual.predicates if not p.variables.isdisjoint(own)]


def _groups(residual: Residual, members: Members, held: frozenset[Variable]) -> tuple[Members, ...]:
    """The atoms that variables beyond the held ones, or predicates on these, tie together."""
    query: Query = residual.query
    groups: list[tuple[Members, frozenset[Variable]]] = []
    single = [(frozenset({i}), query.atoms[i].variables - held) for i in sorted(members)]
    ties = [(frozenset[int](), p.variables - held) for p in residual.predicates]
    for atoms, variables in (*single, *ties):
        near = [one for one in groups if not one[1].isdisjoint(variables)]
        groups = [one for one in groups if one not in near]
        groups.append(
            (
                atoms.union(*(own for own, _ in near)),
                variables.union(*(own for _, own in near)),
            )
        )
    return tuple(sorted((atoms for atoms, _ in groups if atoms), key=sorted))
