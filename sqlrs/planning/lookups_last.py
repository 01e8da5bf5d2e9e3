"""Groups of tables that are joined by keys: counted by what small tables are looked up with.

A table that is joined by its key, and has far fewer rows than the table that leads to all others,
is joined after rows were counted for each of its keys. docs/proofs/plans.md, section 1, has the
proof; sizes guide the choice, never the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from sqlrs.planning.bags import Grouping, Input, Join, placed
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.inclusion_exclusion import Sum, Term
from sqlrs.planning.leaves import Leaf, OfTable
from sqlrs.planning.problem import Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual

# A row that is counted takes about as long as a quarter of a group: fewer rows for each of them
# save nothing.
_ROWS_PER_GROUP = 4


def lookups_last(
    residual: Residual,
    keys: Iterable[Variable],
    statistics: Statistics,
    sizes: Mapping[Variable, int],
) -> ByGroup | None:
    """The plan; None where distinct outputs are counted, or no table is looked up afterwards.

    ``sizes``: about how many values the keys have.
    """
    plan = ByGroup(residual, frozenset(keys))
    if residual.output is not None or residual.boundary:
        return None
    problem = replace(Problem.of(residual), free=plan.free)
    join = _Stages(problem, statistics, sizes).joined(problem.leaves)
    if all(isinstance(one, Leaf) for one in join.inputs):
        return None
    whole, held = placed(join, problem.conditions)
    if not held.issuperset(problem.conditions):
        return None
    return replace(plan, total=Sum(problem, (Term(1, whole),), 0.0))


@dataclass(frozen=True)
class _Stages:
    """Where to count: before each table that is looked up afterwards."""

    problem: Problem
    statistics: Statistics
    sizes: Mapping[Variable, int]

    def joined(self, leaves: Sequence[Leaf]) -> Join:
        """These leaves joined, the last one with what the others were counted by."""
        for leaf in leaves:
            rest = tuple(one for one in leaves if one is not leaf)
            if rest and self._is_last(leaf, rest):
                counted: Input = Grouping(self.joined(rest), self._needed(rest))
                return Join((counted, leaf))
        return Join(tuple(leaves))

    def _needed(self, leaves: Sequence[Leaf]) -> frozenset[Variable]:
        """What of these leaves is free, or joined or compared with what comes after them."""
        inside = _held(leaves)
        later = _held(one for one in self.problem.leaves if one not in leaves)
        needed = self.problem.free | later
        for condition in self.problem.conditions:
            if not condition.variables <= inside:
                needed |= condition.variables
        return inside & needed

    def _is_last(self, leaf: Leaf, rest: Sequence[Leaf]) -> bool:
        """Whether a leaf is looked up by a key, and the others have few groups without it."""
        held = _held(rest)
        if not any(key <= held for key in leaf.keys) or not _is_led(rest):
            return False
        groups = self._groups(self._needed(rest), rest)
        return groups * _ROWS_PER_GROUP <= max(map(self._rows, rest))

    def _groups(self, kept: frozenset[Variable], rest: Sequence[Leaf]) -> float:
        """About how many values the kept variables have: those of the keys that they look up."""
        later = [one for one in self.problem.leaves if one not in rest]
        sizes: list[float] = []
        left = set(kept)
        for one in later:
            if any(key <= kept for key in one.keys):
                sizes.append(self._rows(one))
                left -= one.variables
        return prod([*sizes, *(self.sizes.get(v, float("inf")) for v in left)])

    def _rows(self, leaf: Leaf) -> float:
        return self.statistics.size(leaf.table) if isinstance(leaf, OfTable) else float("inf")


def _is_led(leaves: Sequence[Leaf]) -> bool:
    """Whether one leaf leads to all others, each by a key of its own."""
    for first in leaves:
        left, known = [one for one in leaves if one is not first], first.variables
        while found := next((x for x in left if any(k <= known for k in x.keys)), None):
            left.remove(found)
            known |= found.variables
        if not left:
            return True
    return False


def _held(leaves: Iterable[Leaf]) -> frozenset[Variable]:
    return frozenset[Variable]().union(*(leaf.variables for leaf in leaves))
