"""Largest counts from the groups that lead without lookups: a lookup only takes results away.

A leaf of which a key is known to the other leaves has at most one row for each of their results.
Without such lookups every group counts as much or more, and residuals that differ in lookups alone
have these groups in common. The groups that count most are evaluated exactly. If the best of them
reaches the least of their bounds, no other group counts more; else the groups are all counted, by
another plan. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlrs.catalog import Family
from sqlrs.planning.bags import Grouping
from sqlrs.planning.bounding import connected
from sqlrs.planning.estimate import STEP
from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.leaves import Leaf, Picked, TableRows, weights_of
from sqlrs.planning.problem import Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Variable
from sqlrs.records import dataclass
from sqlrs.trees.naming import column_names, free_name

LEADING = 1000
# Groups by one variable are large: of these few hold rows enough to be worth a look.
LEADING_BY_ONE = 64
# Kept ones are compared with those of whole tables, of which a condition leaves a part.
_MOST_BY_ONE = 10_000
# Of fewer rows all groups are counted in a few milliseconds.
_WORTH_KEEPING = 50_000


@dataclass(frozen=True)
class Leaders:
    """The counts without lookups, the groups that lead, and their exact evaluation."""

    core: Sum
    picked: Picked
    exact: Sum
    most: int

    @property
    def cost(self) -> float:
        """Expected if the groups that lead are enough."""
        return self.core.cost + self.exact.cost + 2 * STEP

    @property
    def grouping(self) -> Grouping:
        """The counts without lookups as a step."""
        grouping = one_grouping(self.core)
        assert grouping is not None
        return grouping


def leading_number(free: frozenset[Variable]) -> int:
    """How many groups are taken to lead; the same for all plans with these groups."""
    return LEADING_BY_ONE if len(free) == 1 else LEADING


def one_grouping(total: Sum) -> Grouping | None:
    """The one step that counts the groups of a sum, None where several terms or none do."""
    free = total.problem.free
    if not free or total.problem.output is not None or len(total.terms) != 1:
        return None
    (term,) = total.terms
    return Grouping(term.join, free) if term.coefficient == 1 else None


def leaders(problem: Problem, planner: Planner, reserved: frozenset[str]) -> Leaders | None:
    """The evaluation by groups that lead, None where there is no lookup to leave out."""
    if not problem.free or problem.output is not None:
        return None
    kept = without_lookups(problem)
    if len(kept) == len(problem.leaves) or not _worth_it(kept):
        return None
    held = _held(kept)
    core = replace(
        problem,
        leaves=kept,
        inequalities=frozenset(p for p in problem.inequalities if p.variables <= held),
        others=tuple(c for c in problem.others if c.variables <= held),
    )
    counted = planner.covered(core)
    names = column_names(problem.free)
    picked = Picked(
        name=free_name("leading", set(reserved)),
        columns=tuple(sorted((c, v) for v, c in names.items())),
        keys=(problem.free,),
        expected=float(leading_number(problem.free)),
        limited=True,
    )
    exact = planner.covered(problem.restricted([picked]))
    return Leaders(counted, picked, exact, leading_number(problem.free))


def leaders_of_whole_tables(
    problem: Problem, statistics: Statistics, reserved: frozenset[str]
) -> Leaders | None:
    """The same where the groups that lead are those of whole tables, which serve every query.

    Not only lookups are left out but every condition. None where nothing is, where the groups would
    hold other values than whole numbers, or where all groups are counted soon.
    """
    whole = not any(map(weights_of, problem.leaves)) and problem.output is None
    if not problem.free or not whole:
        return None
    kept = _without_all_lookups(problem)
    core = Problem(tuple(replace(leaf, filters=frozenset()) for leaf in kept), problem.free)
    if (
        not _are_of_whole_tables(kept)
        or any(v.type.family is not Family.INTEGER for v in problem.free)
        or core == problem
        or max(statistics.size(leaf.table) for leaf in kept) < _WORTH_KEEPING
    ):
        return None
    planner = Planner(statistics)
    most = _number_kept(kept, problem.free, statistics)
    names = column_names(problem.free)
    picked = Picked(
        name=free_name("leading", set(reserved)),
        columns=tuple(sorted((c, v) for v, c in names.items())),
        keys=(problem.free,),
        expected=float(most),
    )
    exact = planner.covered(problem.restricted([picked]))
    return Leaders(planner.covered(core), picked, exact, most)


def _number_kept(
    leaves: Sequence[TableRows], free: frozenset[Variable], statistics: Statistics
) -> int:
    """How many groups of whole tables are kept; by one variable a part of its values."""
    if len(free) > 1:
        return LEADING
    values = max(
        statistics.repetition(leaf.table, name).distinct
        for leaf in leaves
        for name, variable in leaf.columns
        if variable in free
    )
    return min(max(int(values / 10), LEADING_BY_ONE), _MOST_BY_ONE)


def _without_all_lookups(problem: Problem) -> tuple[TableRows, ...]:
    """The leaves without those that have one row at most for each result of the others."""
    leaves = [leaf for leaf in problem.leaves if isinstance(leaf, TableRows)]
    while True:
        for leaf in leaves:
            rest = [other for other in leaves if other is not leaf]
            held = _held(rest)
            known = any(key <= held for key in leaf.keys)
            if rest and known and problem.free <= held and connected(rest):
                leaves = rest
                break
        else:
            return tuple(leaves)


def _are_of_whole_tables(leaves: Sequence[TableRows]) -> bool:
    """Whether every row of the tables can be read: there is no constant or computed column."""
    return bool(leaves) and not any(
        leaf.constants
        or leaf.table.bounded
        or any(leaf.table.column(name).computed is not None for name, _ in leaf.columns)
        for leaf in leaves
    )


def without_lookups(problem: Problem) -> tuple[Leaf, ...]:
    """The leaves without those that have one row at most for each result of the others.

    A lookup with a condition of its own stays: where it takes most results away, groups that lead
    without it say little.
    """
    leaves = list(problem.leaves)
    while (leaf := _lookup(leaves, problem)) is not None:
        leaves.remove(leaf)
    return tuple(leaves)


def _worth_it(kept: Sequence[Leaf]) -> bool:
    """Whether what is left is a whole table, which many residuals have in common.

    Of a join or of some rows alone the groups cost less than looking them up again.
    """
    return len(kept) == 1 and all(
        isinstance(leaf, TableRows) and not leaf.filters and not leaf.constants for leaf in kept
    )


def _lookup(leaves: Sequence[Leaf], problem: Problem) -> Leaf | None:
    for leaf in leaves:
        rest = [other for other in leaves if other is not leaf]
        held = _held(rest)
        if (
            isinstance(leaf, TableRows)
            and not leaf.weights
            and not leaf.filters
            and not leaf.constants
            and all(
                c.variables <= held or c.variables.isdisjoint(leaf.variables)
                for c in problem.conditions
            )
            and problem.free <= held
            and any(key <= held for key in leaf.keys)
            and connected(rest)
        ):
            return leaf
    return None


def _held(leaves: Sequence[Leaf]) -> frozenset[Variable]:
    return frozenset[Variable]().union(*(leaf.variables for leaf in leaves))
