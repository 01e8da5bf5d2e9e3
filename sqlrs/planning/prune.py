"""Largest counts without most of the groups: bound every group, evaluate only those that may win.

For each value of a boundary variable a cheap problem bounds the counts of all groups that hold the
value. Those with the largest bounds are evaluated first; the best of them rules out every value
whose bound does not exceed it, and the rest is evaluated exactly. Where the groups of one value are
still many, further levels bound pairs, triples and so on. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

from sqlrs.planning.bounding import bounding, cheap_bound, connected
from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.leaves import Picked
from sqlrs.planning.problem import Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Variable
from sqlrs.records import dataclass
from sqlrs.trees.naming import column_names, free_name

SEEDS = 8
# Expected where values stand out; from an even column, on the other hand, all values survive.
_FEW_SURVIVORS = 32.0
_EVEN, _UNEVEN = 1.1, 1.5
_WORTH_A_LEVEL = 0.5


@dataclass(frozen=True)
class Level:
    """Bounds for each value of ``variables``: below the seeds, and below the survivors, so far."""

    variables: tuple[Variable, ...]
    seeding: Sum
    surviving: Sum
    seeds: Picked
    survivors: Picked


@dataclass(frozen=True)
class Side:
    """Bounds for each value of one more variable, which thin out the survivors."""

    variable: Variable
    total: Sum
    survivors: Picked


@dataclass(frozen=True)
class Pruning:
    """The levels, the bounds from other sides, and the exact evaluation of seeds and survivors.

    ``first`` is how many values are evaluated before any is ruled out.
    """

    levels: tuple[Level, ...]
    sides: tuple[Side, ...]
    seeded: Sum
    rest: Sum
    first: int

    @property
    def sums(self) -> list[Sum]:
        """Everything that is evaluated."""
        levels = [total for level in self.levels for total in (level.seeding, level.surviving)]
        return [*levels, *(side.total for side in self.sides), self.seeded, self.rest]

    @cached_property
    def cost(self) -> float:
        """Expected for a maximum that stands out."""
        first, *later = self.levels
        bounds = first.seeding.cost + sum(side.total.cost for side in self.sides)
        deeper = sum(level.seeding.cost + 2 * level.surviving.cost for level in later)
        return bounds + deeper + self.seeded.cost + 2 * self.rest.cost


def prune(problem: Problem, planner: Planner, reserved: frozenset[str]) -> Pruning | None:
    """The pruned evaluation of a problem, or None where there is no group to rule out."""
    if not problem.free or problem.output is not None:
        return None
    telling = [v for v in sorted(problem.free) if connected(bounding(problem, [v]).leaves)]
    if not telling:
        return None
    bounds = {v: cheap_bound(problem, v, planner) for v in telling}
    return _Pruner(problem, planner, _Names(problem, reserved, planner.statistics)).prune(bounds)


@dataclass(frozen=True)
class _Chain:
    """The variables of the levels, the bounds of the seeds of each, and what is left of these."""

    variables: tuple[Variable, ...]
    seeding: tuple[Sum, ...]
    seeded: Sum


@dataclass(frozen=True)
class _Pruner:
    """One problem on its way to a pruning: the first level, deeper ones, other sides, the rest."""

    problem: Problem
    planner: Planner
    names: _Names

    def prune(self, bounds: Mapping[Variable, Sum]) -> Pruning:
        """The pruning whose first level has the cheapest of these bounds."""
        first = min(bounds, key=lambda v: bounds[v].cost)
        start = _Chain((first,), (bounds[first],), self._evaluated([self.names.seeds([first])]))
        limit = bounds[first].cost + start.seeded.cost
        sides = tuple(
            Side(v, bound, self.names.survivors([v]))
            for v, bound in bounds.items()
            if v != first and bound.cost <= limit
        )
        chain = self._deepened(start)
        levels = tuple(self._level(chain, depth, sides) for depth in range(len(chain.variables)))
        others = (side.survivors for side in sides if side.variable not in chain.variables)
        rest = self._evaluated([levels[-1].survivors, *others])
        return Pruning(levels, sides, chain.seeded, rest, SEEDS)

    def _deepened(self, chain: _Chain) -> _Chain:
        """The chain with further levels, as long as each saves enough."""
        while len(chain.variables) < len(self.problem.free) - 1:
            deeper = self._deeper(chain)
            if deeper is None:
                break
            cost = deeper.seeding[-1].cost + deeper.seeded.cost
            if cost > _WORTH_A_LEVEL * chain.seeded.cost:
                break
            chain = deeper
        return chain

    def _deeper(self, chain: _Chain) -> _Chain | None:
        """The chain with the variable that makes the best next level, None if there is none."""
        seeds = self.names.seeds(chain.variables)
        options = []
        for variable in sorted(self.problem.free.difference(chain.variables)):
            longer = bounding(self.problem, [*chain.variables, variable])
            if connected(longer.leaves):
                options.append((self.planner.bound(longer.restricted([seeds])), variable))
        if not options:
            return None
        bound, variable = min(options, key=lambda option: option[0].cost)
        variables = (*chain.variables, variable)
        seeded = self._evaluated([self.names.seeds(variables)])
        return _Chain(variables, (*chain.seeding, bound), seeded)

    def _level(self, chain: _Chain, depth: int, sides: Sequence[Side]) -> Level:
        """One level: below the seeds as the chain has it, below the survivors as they are thin."""
        variables = chain.variables[: depth + 1]
        surviving = chain.seeding[depth]
        if depth:
            thin = [self.names.survivors(variables[:-1])]
            thin += [side.survivors for side in sides if side.variable == variables[-1]]
            surviving = self.planner.bound(bounding(self.problem, variables).restricted(thin))
        return Level(
            variables,
            chain.seeding[depth],
            surviving,
            self.names.seeds(variables),
            self.names.survivors(variables),
        )

    def _evaluated(self, picked: Sequence[Picked]) -> Sum:
        """The problem for the picked values alone, exactly."""
        return self.planner.exact(self.problem.restricted(picked))


class _Names:
    """Names for seeds and survivors that no table has."""

    def __init__(self, problem: Problem, reserved: frozenset[str], statistics: Statistics) -> None:
        self.problem = problem
        self.columns = column_names(problem.free)
        self.statistics = statistics
        self._taken = set(reserved)
        self._given: dict[str, str] = {}

    def seeds(self, variables: Sequence[Variable]) -> Picked:
        return self._leaf("seeds", variables, SEEDS)

    def survivors(self, variables: Sequence[Variable]) -> Picked:
        expected = math.prod(self._surviving(variable) for variable in variables)
        return self._leaf("survivors", variables, max(expected, _FEW_SURVIVORS))

    def _leaf(self, kind: str, variables: Sequence[Variable], expected: float) -> Picked:
        joined = "_".join([kind, *(self.columns[v] for v in variables)])
        if joined not in self._given:
            self._given[joined] = free_name(joined, self._taken)
        name = self._given[joined]
        columns = tuple(sorted((c, v) for v, c in column_names(variables).items()))
        key = frozenset(variables)
        return Picked(name=name, columns=columns, keys=(key,), expected=expected)

    def _surviving(self, variable: Variable) -> float:
        """How many values of a variable no bound is expected to rule out."""
        found = math.inf
        for leaf in self.problem.leaves:
            for name, held in leaf.columns:
                if held == variable and not isinstance(leaf, Picked):
                    repetition = self.statistics.repetition(leaf.table, name)
                    skew = repetition.skew(self.statistics.size(leaf.table))
                    share = min(max((_UNEVEN - skew) / (_UNEVEN - _EVEN), 0.0), 1.0)
                    found = min(found, share * repetition.distinct)
        return found
