"""Residuals that are read from the groups of others: of the same join, or of a smaller one.

Those of one join with fewer boundary variables are sums of its groups. Those of more tables begin
with the groups of fewer tables, if these groups are few and find the other tables by keys. Both may
be those of several queries. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import prod

from sqlrs.planning.key_joins import leads_by_keys
from sqlrs.planning.plan import ByKeptGroups, Plain, ResidualPlan, SemiJoins
from sqlrs.planning.table_statistics import Statistics
from sqlrs.planning.witnesses import Witnessed
from sqlrs.query import Atom, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual
from sqlrs.values import behave_alike

Joined = Plain | SemiJoins

# Rows to each group of what others begin with, and by how many columns at most.
_FEW_GROUPS = 8
_MOST_KEPT = 2


@dataclass(frozen=True)
class RolledUp:
    """Plans that are read together, and the place of the one whose groups each is read from."""

    plans: tuple[Joined, ...]
    parents: tuple[int | None, ...]


def rolled_up(plans: Iterable[ResidualPlan], statistics: Statistics | None) -> list[RolledUp]:
    """The plans that are better read from the groups of others, with these before them."""
    joined = [(one, one is not plan) for plan in plans if (one := as_joined(plan))]

    def few(residual: Residual) -> bool:
        return statistics is not None and _has_few_groups(residual, statistics)

    return read_together([one for one, _ in joined], [alone for _, alone in joined], few)


def as_joined(plan: ResidualPlan) -> Joined | None:
    """The join that a plan counts, or the one that groups that lead stand for."""
    whole = plan.otherwise if isinstance(plan, ByKeptGroups) else plan
    return whole if isinstance(whole, Joined) else None


def read_together(
    plans: Sequence[Joined], alone: Sequence[bool], few: Callable[[Residual], bool]
) -> list[RolledUp]:
    """The plans that can be read from the groups of others, with these before them.

    ``alone``: of which plans there is a better one alone; they are read with others only where
    groups are few. ``few``: whether a residual has few groups.
    """
    order = sorted(range(len(plans)), key=lambda i: _size(plans[i].residual))
    parents: dict[int, int | None] = {}
    for place, i in enumerate(order):
        before = [j for j in order[:place] if few(plans[j].residual)]
        smaller = [j for j in before if begins_with(plans[i], plans[j])]
        parents[i] = max(smaller, key=lambda j: _size(plans[j].residual), default=None)
        if not alone[i]:
            finer = (j for j in order[:place] if not alone[j])
            own = (j for j in finer if _are_groups_of(plans[j], plans[i]))
            parents[i] = next(own, parents[i])
    first: dict[int, int] = {}
    trees: dict[int, list[int]] = {}
    for i in order:
        parent = parents[i]
        first[i] = i if parent is None else first[parent]
        trees.setdefault(first[i], []).append(i)
    return [
        RolledUp(
            tuple(plans[i] for i in tree),
            tuple(None if (p := parents[i]) is None else tree.index(p) for i in tree),
        )
        for tree in trees.values()
        if len(tree) > 1
    ]


def _has_few_groups(residual: Residual, statistics: Statistics) -> bool:
    """Whether to count a residual by its boundary leaves a small part of the rows."""
    if not 1 <= len(residual.boundary) <= _MOST_KEPT:
        return False
    rows = max(statistics.size(atom.table) for atom in residual.atoms)
    groups = prod(
        min(
            statistics.repetition(atom.table, name).distinct
            for atom in residual.atoms
            for name, term in atom.terms
            if term == variable
        )
        for variable in residual.boundary
    )
    return _FEW_GROUPS * groups <= rows


def _size(residual: Residual) -> tuple[int, int]:
    return len(residual.members), -len(residual.boundary)


def _are_groups_of(finer: Joined, plan: Joined) -> bool:
    """Whether both count the same combinations of rows, one of them by more variables."""
    if not plan.residual.boundary <= finer.residual.boundary:
        return False
    join = _join_of(plan)
    return join is not None and join == _join_of(finer)


def begins_with(plan: Joined, smaller: Joined) -> bool:
    """Whether a residual can be counted from the groups of a smaller one, each row found by a key.

    What the other tables and conditions read of the smaller one is its boundary. They may be of two
    queries, such as the terms of a signed sum.
    """
    whole, part = plan.residual, smaller.residual
    further = further_atoms(whole, part)
    if not further or not part.boundary or not (_counts_rows(plan) and _counts_rows(smaller)):
        return False
    if whole.generals or not set(part.predicates) <= set(whole.predicates):
        return False
    rest = [whole.query.atoms[i] for i in sorted(further)]
    beside = frozenset[Variable]().union(*(a.variables for a in rest))
    if not _guarded(whole, part) <= beside:
        return False
    left = (p for p in whole.predicates if p not in part.predicates)
    needed = whole.boundary.union(beside, *(p.variables for p in left))
    if not needed & part.variables <= part.boundary or not leads_by_keys(part.boundary, rest):
        return False
    return all(
        behave_alike([a.table.column(n).type for a in whole.atoms for n, t in a.terms if t == v])
        for v in part.boundary
    )


def further_atoms(whole: Residual, part: Residual) -> Members | None:
    """The atoms that a residual has beside those of another one; None where it lacks one of them.

    Of two queries, atoms are the same if they are equal in all: alias, variables and conditions.
    """
    if whole.query is part.query:
        return whole.members - part.members if part.members <= whole.members else None
    held = part.atoms
    rest = frozenset(i for i in whole.members if whole.query.atoms[i] not in held)
    return rest if len(whole.members) - len(rest) == len(held) else None


def _counts_rows(plan: Joined) -> bool:
    """Whether each combination of all the atoms' rows counts once."""
    residual = plan.residual
    if residual.external or residual.weighted:
        return False
    if isinstance(plan, SemiJoins):
        return plan.found.counted == residual.members
    return residual.output is None


def _guarded(whole: Residual, part: Residual) -> frozenset[Variable]:
    """The variables of the smaller residual that one of the two queries alone reads without NULL.

    Those of columns that can hold one: of further atoms' variables none is NULL in any result.
    """
    nullable = {v for a in part.atoms for n, v in a.terms if a.table.column(n).nullable}
    return frozenset(v for v in whole.query.never_null ^ part.query.never_null if v in nullable)


def _join_of(plan: Joined) -> Hashable | None:
    """The join whose rows a plan counts by its boundary; None where it counts something else."""
    residual = plan.residual
    if residual.external or residual.weighted:
        return None
    if isinstance(plan, Plain) and residual.output is not None:
        return None

    def atoms(members: Members) -> tuple[Atom, ...]:
        return tuple(residual.query.atoms[i] for i in sorted(members))

    nullable = {v for a in residual.atoms for n, v in a.terms if a.table.column(n).nullable}
    found = plan.found if isinstance(plan, SemiJoins) else Witnessed(residual.members, ())
    return (
        atoms(found.counted),
        tuple(map(atoms, found.groups)),
        frozenset(v for v in residual.query.never_null if v in nullable),
        residual.inequalities,
        residual.comparisons,
        residual.generals,
    )
