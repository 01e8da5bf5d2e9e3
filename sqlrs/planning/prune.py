"""Largest counts without most of the groups: bound every group, evaluate only those that may win.

For each value of a boundary variable a cheap problem bounds the counts of all groups that hold the
value. Those with the largest bounds are evaluated first; the best of them rules out every value
whose bound does not exceed it, and the rest is evaluated exactly. Where the groups of one value are
still many, further levels bound pairs, triples and so on. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.leaves import Completions, Leaf, Picked, TableRows, completed
from sqlrs.planning.problem import Problem
from sqlrs.planning.statistics import Statistics
from sqlrs.query import Variable
from sqlrs.trees.naming import column_names, free_name

SEEDS = 8
# Expected where values stand out; from an even column, on the other hand, all values survive.
_FEW_SURVIVORS = 32.0
_EVEN, _UNEVEN = 1.1, 1.5
_WORTH_A_LEVEL = 0.5
_WORTH_DROPPING = 0.2


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
    names = _Names(problem, reserved, planner.statistics)
    telling = [v for v in sorted(problem.free) if connected(bounding(problem, [v]).leaves)]
    if not telling:
        return None
    bounds = {v: _cheap_bound(problem, v, planner) for v in telling}
    first = min(bounds, key=lambda v: bounds[v].cost)
    exact = planner.exact(problem.restricted([names.seeds([first])]))
    chain, seeding, seeded = [first], [bounds[first]], exact
    while len(chain) < len(problem.free) - 1:
        found = _deeper(problem, planner, names, chain)
        if found is None or found[1].cost + found[2].cost > _WORTH_A_LEVEL * seeded.cost:
            break
        chain.append(found[0])
        seeding.append(found[1])
        seeded = found[2]
    limit = bounds[first].cost + exact.cost
    sides = [
        Side(v, bound, names.survivors([v]))
        for v, bound in bounds.items()
        if v != first and bound.cost <= limit
    ]
    levels = []
    for depth, seed_bound in enumerate(seeding, 1):
        variables = chain[:depth]
        surviving = seed_bound
        if depth > 1:
            thin = [names.survivors(chain[: depth - 1])]
            thin += [side.survivors for side in sides if side.variable == variables[-1]]
            surviving = planner.bound(bounding(problem, variables).restricted(thin))
        levels.append(
            Level(
                tuple(variables),
                seed_bound,
                surviving,
                names.seeds(variables),
                names.survivors(variables),
            )
        )
    last = [levels[-1].survivors, *(s.survivors for s in sides if s.variable not in chain)]
    rest = planner.exact(problem.restricted(last))
    return Pruning(tuple(levels), tuple(sides), seeded, rest, SEEDS)


def _cheap_bound(problem: Problem, variable: Variable, planner: Planner) -> Sum:
    """A bound for each value of one variable, without the leaves that cost more than they rule out.

    A leaf with a key, all of whose variables others hold, counts a combination once or not at all.
    """
    best = planner.bound(bounding(problem, [variable]))
    while True:
        leaves = best.problem.leaves
        options = []
        for leaf in leaves:
            rest = tuple(other for other in leaves if other is not leaf)
            held = frozenset[Variable]().union(*(other.variables for other in rest))
            if leaf.keys and leaf.variables <= held and connected(rest):
                options.append(planner.bound(replace(best.problem, leaves=rest)))
        cheapest = min(options, key=lambda total: total.cost, default=None)
        if cheapest is None or cheapest.cost > _WORTH_DROPPING * best.cost:
            return best
        best = cheapest


def _deeper(
    problem: Problem, planner: Planner, names: _Names, chain: Sequence[Variable]
) -> tuple[Variable, Sum, Sum] | None:
    """The variable that makes the best next level, its bound, and what is then left to evaluate."""
    options = []
    for variable in sorted(problem.free - set(chain)):
        longer = bounding(problem, [*chain, variable])
        if connected(longer.leaves):
            bound = planner.bound(longer.restricted([names.seeds(chain)]))
            options.append((bound, variable))
    if not options:
        return None
    bound, variable = min(options, key=lambda option: option[0].cost)
    seeds = names.seeds([*chain, variable])
    return variable, bound, planner.exact(problem.restricted([seeds]))


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


def connected(leaves: Sequence[Leaf]) -> bool:
    """Whether common variables connect all leaves; a product of parts bounds next to nothing."""
    remaining = list(leaves[1:])
    known = leaves[0].variables
    while near := [leaf for leaf in remaining if not known.isdisjoint(leaf.variables)]:
        known = known.union(*(leaf.variables for leaf in near))
        remaining = [leaf for leaf in remaining if leaf not in near]
    return not remaining


def bounding(problem: Problem, variables: Iterable[Variable]) -> Problem:
    """A problem of which the value bounds all groups with one value of ``variables``.

    Each leaf gives up the other free variables and counts their most frequent values instead; a
    leaf with a key and nothing left counts at most once and goes.
    """
    kept_free = frozenset(variables)
    others = problem.free - kept_free
    leaves = []
    for leaf in problem.leaves:
        kept = tuple((c, v) for c, v in leaf.columns if v not in others)
        if len(kept) == len(leaf.columns):
            leaves.append(leaf)
        elif kept or not leaf.keys:
            assert isinstance(leaf, TableRows | Completions)
            leaves.append(completed(leaf, kept))
    return Problem(
        leaves=tuple(leaves),
        free=kept_free,
        inequalities=frozenset(p for p in problem.inequalities if p.variables.isdisjoint(others)),
        others=tuple(c for c in problem.others if c.variables.isdisjoint(others)),
    )
