"""Problem -> the cheapest tree of joins and groupings: variable elimination as a search over sets.

A set of leaves is joined from two smaller ones, each as it is or grouped by what the rest of the
problem still needs. `structure.py` says what the choice depends on, `parts.py` what can be made of
a set of leaves, `join_order.py` searches; here the tree gets the names of the problem.
"""

from __future__ import annotations

from sqlrs.planning.bags import Grouping, Input, Join, placed
from sqlrs.planning.estimate import Mask
from sqlrs.planning.join_order import cheapest
from sqlrs.planning.parts import Part, PartInput, Parts
from sqlrs.planning.problem import Problem
from sqlrs.planning.structure import Structure, numbered
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Inequality, Variable
from sqlrs.records import dataclass


@dataclass(frozen=True)
class Decomposition:
    """A tree with all conditions that it can read, its cost, and the inequalities it cannot."""

    join: Join
    cost: float
    uncovered: frozenset[Inequality]


def decompose(
    problem: Problem, statistics: Statistics, forced: frozenset[Inequality]
) -> Decomposition:
    """The cheapest tree found in which the ``forced`` inequalities are read inside one bag."""
    number = numbered(problem)
    tree = cheapest(Structure.of(problem, statistics, forced, number))
    bare = _Named(problem, tree.parts, tuple(number)).join(tree.whole)
    join, held = placed(bare, problem.conditions)
    return Decomposition(join, tree.cost, problem.inequalities - held)


@dataclass(frozen=True)
class _Named:
    """Parts with the names of one problem."""

    problem: Problem
    parts: Parts
    names: tuple[Variable, ...]

    def join(self, part: Part) -> Join:
        """The inputs of a part, each with all that is below it."""
        return Join(tuple(self._input(one) for one in part.inputs))

    def _input(self, one: PartInput) -> Input:
        if one.part is None:
            return self.problem.leaves[one.leaf]
        keep, distinct = self.parts.kept(one.part)
        if one.keep != keep:
            distinct = None if distinct is None else one.keep
        return Grouping(
            self.join(one.part),
            self._variables(one.keep),
            None if distinct is None else self._variables(distinct),
            self.problem.output,
        )

    def _variables(self, mask: Mask) -> frozenset[Variable]:
        return frozenset(v for i, v in enumerate(self.names) if mask >> i & 1)
