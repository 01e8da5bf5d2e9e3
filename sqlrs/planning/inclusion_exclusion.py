"""Inequalities that no bag of a tree holds: [x ≠ y] = 1 − [x = y], a signed sum of smaller problems.

docs/proofs/plans.md proves that the terms add up to the problem's value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlrs.planning.canonical import canonical
from sqlrs.planning.decompose import decompose
from sqlrs.planning.problem import Equal, Leaf, Problem, substituted
from sqlrs.planning.statistics import Statistics
from sqlrs.planning.tree import Join
from sqlrs.query import Inequality, Variable

MOST_TERMS = 40

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


class Solver:
    """Plans problems of one query, each kind of problem once."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self._solved: dict[object, Sum | None] = {}

    def bound(self, problem: Problem) -> Sum:
        """One tree, without the inequalities that it cannot read: never less than the value."""
        found = decompose(problem, self.statistics, frozenset())
        return Sum(problem, (Term(1, found.join),), found.cost)

    def solve(self, problem: Problem) -> Sum:
        """The cheapest exact way found: all in bags, or corrected by inclusion and exclusion."""
        covered = self._covered(problem)
        if problem.output is not None:
            return covered
        split = self._split(problem, MOST_TERMS)
        return split if split is not None and split.cost < covered.cost else covered

    def _covered(self, problem: Problem) -> Sum:
        found = decompose(problem, self.statistics, problem.inequalities)
        return Sum(problem, (Term(1, found.join),), found.cost)

    def _split(self, problem: Problem, budget: int) -> Sum | None:
        """The main tree and its corrections, or None past the budget of terms."""
        main = decompose(problem, self.statistics, frozenset())
        if not main.uncovered:
            return Sum(problem, (Term(1, main.join),), main.cost)
        parts = quotients(problem, main.uncovered)
        if parts is None or len(parts) >= budget:
            return None
        terms, cost = [Term(1, main.join)], main.cost
        for coefficient, quotient in parts:
            solved = self._quotient(quotient, budget - len(terms))
            if solved is None:
                return None
            terms += [replace(t, coefficient=coefficient * t.coefficient) for t in solved.terms]
            cost += solved.cost
        return Sum(problem, tuple(terms), cost) if len(terms) <= budget else None

    def _quotient(self, problem: Problem, budget: int) -> Sum | None:
        split = self._split(problem, budget)
        if split is not None and len(split.terms) == 1:
            return split
        covered = self._covered(problem)
        return split if split is not None and split.cost < covered.cost else covered


def quotients(
    problem: Problem, uncovered: frozenset[Inequality]
) -> list[tuple[int, Problem]] | None:
    """The corrections for dropping ``uncovered``: coefficients and problems, equal ones merged.

    None if there are far too many.
    """
    kept = problem.inequalities - uncovered
    signs: dict[_Partition, int] = {frozenset(): 1}
    pending = sorted(uncovered, key=lambda p: (p.left, p.right))
    for position, inequality in enumerate(pending):
        later = pending[position + 1 :]
        grown: dict[_Partition, int] = {}
        for partition, sign in signs.items():
            joined = _identified(partition, inequality)
            if joined is None:
                continue
            grown[partition] = grown.get(partition, 0) + sign
            if not _contradicts(joined, kept, later):
                grown[joined] = grown.get(joined, 0) - sign
        signs = {partition: sign for partition, sign in grown.items() if sign}
        if len(signs) > 8 * MOST_TERMS:
            return None
    merged: dict[object, tuple[int, Problem]] = {}
    for partition, sign in signs.items():
        if partition:
            quotient = _quotient(problem, partition, kept)
            marks = {v: v.name if v in problem.free else None for v in quotient.variables}
            form = canonical(quotient.leaves, quotient.conditions, dict(marks)).form
            before = merged.get(form, (0, quotient))
            merged[form] = (before[0] + sign, before[1])
    return [(sign, quotient) for sign, quotient in merged.values() if sign]


def _identified(partition: _Partition, inequality: Inequality) -> _Partition | None:
    """The partition with both sides in one block, or None where they already are."""
    touched = [block for block in partition if not block.isdisjoint(inequality.variables)]
    joined = inequality.variables.union(*touched)
    if len(touched) == 1 and touched[0] == joined:
        return None
    return (partition - set(touched)) | {joined}


def _contradicts(
    partition: _Partition, kept: Iterable[Inequality], later: Iterable[Inequality]
) -> bool:
    """Whether a block holds both sides of an inequality that still applies."""
    return any(p.variables <= block for block in partition for some in (kept, later) for p in some)


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
            if (both := other.merged(leaf)) is not None:
                found[i] = both
                break
        else:
            found.append(leaf)
    return tuple(found)


def _substituted_inequality(p: Inequality, image: Mapping[Variable, Variable]) -> Inequality:
    return Inequality.between(image.get(p.left, p.left), image.get(p.right, p.right))
