"""Residuals that are read from the groups of others: of the same join, or of a smaller one.

Those of one join with fewer boundary variables are sums of its groups. Those of more tables begin
with the groups of fewer tables, if these groups are few and find the other tables by keys. Both may
be those of several queries. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
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

    @property
    def begun(self) -> tuple[int, ...]:
        """The places of those whose groups others begin with."""
        return tuple(sorted({parent for parent in self.parents if parent is not None}))


def rolled_up(
    plans: Iterable[ResidualPlan],
    statistics: Statistics | None,
    known_few: Collection[Joined] = (),
    *,
    many: bool = True,
) -> list[RolledUp]:
    """The plans that are better read from the groups of others, with these before them.

    ``known_few``: those of which it is known that they have few groups. ``many``: as in
    ``read_together``.
    """
    joined = [(one, one is not plan) for plan in plans if (one := as_joined(plan))]
    counted = {id(plan) for plan in known_few}

    def few(plan: Joined) -> bool:
        expected = statistics is not None and _has_few_groups(plan.residual, statistics)
        return expected or id(plan) in counted

    alone = [alone for _, alone in joined]
    return read_together([one for one, _ in joined], alone, few, many=many)


def are_few(groups: float, residual: Residual, statistics: Statistics) -> bool:
    """Whether so many groups are a small part of a residual's rows."""
    return _FEW_GROUPS * groups <= max(statistics.size(atom.table) for atom in residual.atoms)


def as_joined(plan: ResidualPlan) -> Joined | None:
    """The join that a plan counts, or the one that groups that lead stand for."""
    whole = plan.otherwise if isinstance(plan, ByKeptGroups) else plan
    return whole if isinstance(whole, Joined) else None


def read_together(
    plans: Sequence[Joined],
    alone: Sequence[bool],
    few: Callable[[Joined], bool],
    *,
    many: bool = True,
) -> list[RolledUp]:
    """The plans that can be read from the groups of others, with these before them.

    ``alone``: of which plans there is a better one alone; they are read with others only where
    groups are few. ``few``: whether a plan has few groups. ``many``: others of the same join are
    read from however many groups.
    """
    order = sorted(range(len(plans)), key=lambda i: _size(plans[i].residual))
    begun = {i for i in order if few(plans[i])}
    parents: dict[int, int | None] = {}

    def read_from(i: int, among: Collection[int]) -> int | None:
        before = [j for j in order[: order.index(i)] if j in among]
        finer = [j for j in before if (many or j in begun) and are_groups_of(plans[j], plans[i])]
        smaller = (j for j in before if j in begun and begins_with(plans[i], plans[j]))
        # The last of a join has the fewest groups.
        if finer:
            return finer[-1]
        return max(smaller, key=lambda j: _size(plans[j].residual), default=None)

    def evaluate(i: int) -> None:
        # Rather from what is evaluated anyway than from what has a better plan alone.
        parents[i] = read_from(i, {*parents})
        if parents[i] is None:
            parents[i] = parent = read_from(i, begun)
            if parent is not None:
                evaluate(parent)

    for i in order:
        if not alone[i]:
            evaluate(i)
        elif (parent := read_from(i, begun & parents.keys())) is not None:
            parents[i] = parent
    counted = begun & parents.keys()
    for i in order:
        if i not in parents:
            parents[i] = read_from(i, counted)
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
    groups = prod(
        min(
            statistics.repetition(atom.table, name).distinct
            for atom in residual.atoms
            for name, term in atom.terms
            if term == variable
        )
        for variable in residual.boundary
    )
    return are_few(groups, residual, statistics)


def _size(residual: Residual) -> tuple[int, int]:
    return len(residual.members), -len(residual.boundary)


def are_groups_of(finer: Joined, plan: Joined) -> bool:
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
