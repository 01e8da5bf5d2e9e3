"""Cheap problems that bound every group of another one: docs/proofs/plans.md, section 5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.leaves import Completions, Leaf, TableRows, completed
from sqlrs.planning.problem import Problem
from sqlrs.query import Variable

_WORTH_DROPPING = 0.2


def bounding(problem: Problem, variables: Iterable[Variable]) -> Problem:
    """A problem of which the value bounds all groups with one value of ``variables``.

    Each leaf gives up the other free variables and counts their most frequent values instead; a
    leaf with a key, no weight and nothing left counts at most once and goes.
    """
    kept_free = frozenset(variables)
    others = problem.free - kept_free
    leaves = []
    for leaf in problem.leaves:
        kept = tuple((c, v) for c, v in leaf.columns if v not in others)
        if len(kept) == len(leaf.columns):
            leaves.append(leaf)
        elif kept or not leaf.keys or leaf.counted:
            assert isinstance(leaf, TableRows | Completions)
            leaves.append(completed(leaf, kept))
    return Problem(
        leaves=tuple(leaves),
        free=kept_free,
        inequalities=frozenset(p for p in problem.inequalities if p.variables.isdisjoint(others)),
        others=tuple(c for c in problem.others if c.variables.isdisjoint(others)),
    )


def cheap_bound(problem: Problem, variable: Variable, planner: Planner) -> Sum:
    """A bound for each value of one variable, without the leaves that cost more than they rule out.

    A leaf with a key and no weight, all of whose variables others hold, counts a combination once
    or not at all.
    """
    best = planner.bound(bounding(problem, [variable]))
    while True:
        leaves = best.problem.leaves
        options = []
        for leaf in leaves:
            rest = tuple(other for other in leaves if other is not leaf)
            held = frozenset[Variable]().union(*(other.variables for other in rest))
            once = bool(leaf.keys) and not leaf.counted
            if once and leaf.variables <= held and connected(rest):
                options.append(planner.bound(replace(best.problem, leaves=rest)))
        cheapest = min(options, key=lambda total: total.cost, default=None)
        if cheapest is None or cheapest.cost > _WORTH_DROPPING * best.cost:
            return best
        best = cheapest


def connected(leaves: Sequence[Leaf]) -> bool:
    """Whether common variables connect all leaves; a product of parts bounds next to nothing.

    The heaviest row of a leaf with a key is one number, which needs no connection.
    """
    first, *remaining = [leaf for leaf in leaves if leaf.variables or not leaf.keys]
    known = first.variables
    while near := [leaf for leaf in remaining if not known.isdisjoint(leaf.variables)]:
        known = known.union(*(leaf.variables for leaf in near))
        remaining = [leaf for leaf in remaining if leaf not in near]
    return not remaining
