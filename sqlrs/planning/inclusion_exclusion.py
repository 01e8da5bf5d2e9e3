"""Inequalities that no bag of a tree holds: [x ≠ y] = 1 − [x = y], a signed sum of problems.

docs/proofs/plans.md proves that the terms add up to the problem's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlrs.planning.bags import Join
from sqlrs.planning.canonical import canonical, twins
from sqlrs.planning.decompose import Decomposition, decompose
from sqlrs.planning.leaves import Leaf, merged
from sqlrs.planning.problem import Equal, Problem, substituted
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Inequality, Variable
from sqlrs.records import dataclass

# How many terms are worth planning: more where reading all inequalities in bags takes minutes.
_FEW_TERMS, _MANY_TERMS = 24, 128
_MANY_FROM_COST = 3e7
# Partitions are many where variables are alike, and then few of them differ.
_PARTITIONS_A_TERM = 10

_Partition = frozenset[frozenset[Variable]]


@dataclass(frozen=True)
class Term:
    """One tree, counted with a sign and a multiplicity."""

    coefficient: int
    join: Join


@dataclass(frozen=True)
class Sum:
    """Trees whose signed counts add up to the value of the problem, and what they cost."""

    problem: Problem
    terms: tuple[Term, ...]
    cost: float


class Planner:
    """Plans problems of one query, each kind of problem once."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics

    def bound(self, problem: Problem) -> Sum:
        """One tree, without the inequalities that it cannot read: never less than the value."""
        found = decompose(problem, self.statistics, frozenset())
        return Sum(problem, (Term(1, found.join),), found.cost)

    def exact(self, problem: Problem, *, thorough: bool = False) -> Sum:
        """The cheapest exact way found: all in bags, or corrected by inclusion and exclusion."""
        if problem.output is not None:
            return self.covered(problem)
        main = decompose(problem, self.statistics, frozenset())
        if not main.uncovered:
            return Sum(problem, (Term(1, main.join),), main.cost)
        covered = self.covered(problem)
        huge = thorough and covered.cost >= _MANY_FROM_COST
        budget = _MANY_TERMS if huge else _FEW_TERMS
        return self._split(problem, main, budget, covered.cost) or covered

    def covered(self, problem: Problem) -> Sum:
        """One tree in which all inequalities are read in bags."""
        found = decompose(problem, self.statistics, problem.inequalities)
        return Sum(problem, (Term(1, found.join),), found.cost)

    def _split(self, problem: Problem, main: Decomposition, budget: int, most: float) -> Sum | None:
        """The main tree and its corrections, or None past the budget of terms or the cost."""
        if main.cost >= most:
            return None
        parts = quotients(problem, main.uncovered, budget)
        if parts is None or len(parts) >= budget:
            return None
        terms, cost = [Term(1, main.join)], main.cost
        for coefficient, quotient in parts:
            solved = self._cheapest(quotient, budget - len(terms), most - cost)
            terms += [replace(t, coefficient=coefficient * t.coefficient) for t in solved.terms]
            cost += solved.cost
            if len(terms) > budget or cost >= most:
                return None
        return Sum(problem, _rolled_up(terms, problem.free), cost)

    def _cheapest(self, problem: Problem, budget: int, most: float) -> Sum:
        """The cheaper of both ways; where neither is below ``most``, any of them."""
        main = decompose(problem, self.statistics, frozenset())
        if not main.uncovered:
            return Sum(problem, (Term(1, main.join),), main.cost)
        covered = self.covered(problem)
        return self._split(problem, main, budget, min(most, covered.cost)) or covered


def _rolled_up(terms: Sequence[Term], free: frozenset[Variable]) -> tuple[Term, ...]:
    """Terms that a step of another term already holds in finer groups are summed up from there."""
    marks = {v: v.name for v in free}
    finer = {
        canonical(step.join.leaves, step.join.applied, marks).form: step
        for term in terms
        for step in term.join.steps
        if free <= step.keep and len(step.join.leaves) > 1
    }
    found = []
    for term in terms:
        form = canonical(term.join.leaves, term.join.applied, marks).form
        step = finer.get(form)
        found.append(term if step is None else replace(term, join=Join((step,))))
    return tuple(found)


def quotients(
    problem: Problem, uncovered: frozenset[Inequality], most: int = _MANY_TERMS
) -> list[tuple[int, Problem]] | None:
    """The corrections for dropping ``uncovered``: coefficients and problems, equal ones merged.

    None if there are far too many.
    """
    kept = problem.inequalities - uncovered
    signs = _signs(uncovered, kept, _PARTITIONS_A_TERM * most)
    if signs is None:
        return None
    together: dict[object, tuple[int, Problem]] = {}
    for partition, sign in _up_to_twins(problem, kept, signs):
        quotient = _quotient(problem, partition, kept)
        marks = {v: v.name if v in problem.free else None for v in quotient.variables}
        form = canonical(quotient.leaves, quotient.conditions, marks).form
        before = together.get(form, (0, quotient))
        together[form] = (before[0] + sign, before[1])
    return [(sign, quotient) for sign, quotient in together.values() if sign]


def _signs(
    uncovered: frozenset[Inequality], kept: frozenset[Inequality], most: int
) -> dict[_Partition, int] | None:
    """The coefficient of every partition of variables: Π (1 − [x = y]) over ``uncovered``.

    Left out are those in which an inequality that is still to be read cannot hold. None if there
    are too many.
    """
    pending = sorted(uncovered, key=lambda p: (p.left, p.right))
    apart = [p.variables for p in (*pending, *kept)]
    signs: dict[_Partition, int] = {frozenset(): 1}
    for position, inequality in enumerate(pending, 1):
        still_apart = apart[position:]
        both = inequality.variables
        grown = dict(signs)
        for partition, sign in signs.items():
            touched = [block for block in partition if not block.isdisjoint(both)]
            block = both.union(*touched)
            if len(touched) == 1 and touched[0] == block:
                del grown[partition]
            elif not any(pair <= block for pair in still_apart):
                joined = (partition - set(touched)) | {block}
                grown[joined] = grown.get(joined, 0) - sign
        signs = {partition: sign for partition, sign in grown.items() if sign}
        if len(signs) > most:
            return None
    return signs


def _up_to_twins(
    problem: Problem, kept: frozenset[Inequality], signs: Mapping[_Partition, int]
) -> Iterable[tuple[_Partition, int]]:
    """One of all partitions that differ by exchanging twins, with the sum of their signs."""
    kind = twins(replace(problem, inequalities=kept))
    found: dict[Hashable, tuple[_Partition, int]] = {}
    for partition, sign in signs.items():
        if partition:
            key = tuple(sorted(tuple(sorted(kind[v] for v in block)) for block in partition))
            first, total = found.get(key, (partition, 0))
            found[key] = (first, total + sign)
    return found.values()


def _quotient(problem: Problem, partition: _Partition, kept: frozenset[Inequality]) -> Problem:
    image: dict[Variable, Variable] = {}
    equal: list[Equal] = []
    for block in partition:
        free = sorted(block & problem.free)
        chosen = free[0] if free else min(block)
        image.update({v: chosen for v in block if v not in problem.free and v != chosen})
        equal += [Equal(chosen, v) for v in free[1:]]
    return Problem(
        leaves=_merged(leaf.substituted(image) for leaf in problem.leaves),
        free=problem.free,
        inequalities=frozenset(_substituted_inequality(p, image) for p in kept),
        others=(*(substituted(c, image) for c in problem.others), *equal),
        output=problem.output,
    )


def _merged(leaves: Iterable[Leaf]) -> tuple[Leaf, ...]:
    """Leaves whose key says that they are the same row become one."""
    found: list[Leaf] = []
    for leaf in leaves:
        for i, other in enumerate(found):
            if (both := merged(other, leaf)) is not None:
                found[i] = both
                break
        else:
            found.append(leaf)
    return tuple(found)


def _substituted_inequality(p: Inequality, image: Mapping[Variable, Variable]) -> Inequality:
    return Inequality.between(image.get(p.left, p.left), image.get(p.right, p.right))
