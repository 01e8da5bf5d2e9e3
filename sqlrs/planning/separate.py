"""Parts of a problem that meet in free variables only: the largest counts of each, multiplied.

For the two halves of a bow tie whose closing edges are gone, max over b, d of f(x,b) · g(x,d) is
max f(x,·) · max g(x,·), so no combination of b and d is ever looked at. docs/proofs/plans.md has
the proof.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

from sqlrs.planning.bags import Grouping, Input, Join, unique_rows
from sqlrs.planning.estimate import STEP
from sqlrs.planning.inclusion_exclusion import Planner, Sum, Term
from sqlrs.planning.leaves import Completions, Leaf, TableRows, completed
from sqlrs.planning.problem import Condition, Problem
from sqlrs.query import Variable


def reduced(problem: Problem) -> Problem:
    """The problem with fewer free variables and the same largest count.

    A leaf with a key goes where another one of its kind does the same for other variables, which
    are free, or all of its own are. Its rows have no weights, which would be multiplied.
    Where a leaf alone holds free variables beside shared ones, it counts its most frequent
    completion instead.
    """
    if problem.output is not None:
        return problem
    compared = frozenset[Variable]().union(*(c.variables for c in problem.conditions))
    leaves = list(problem.leaves)
    gone: set[Variable] = set()
    while (copy := _copy_of_another(leaves, problem.free - compared, problem.free)) is not None:
        leaves.remove(copy)
        gone |= copy.variables - _held(leaves)
    for place, leaf in enumerate(leaves):
        others = _held(leaves[:place] + leaves[place + 1 :])
        own = leaf.variables - others
        kept = tuple((c, v) for c, v in leaf.columns if v in others)
        left = [c for c, v in leaf.columns if v in own]
        assert isinstance(leaf, TableRows | Completions)
        plain = len(left) == len(own) and leaf.guarded.isdisjoint(left)
        inside = leaf.variables <= problem.free
        if own and kept and plain and inside and own.isdisjoint(compared):
            leaves[place] = completed(leaf, kept)
            gone |= own
    return replace(problem, leaves=tuple(leaves), free=problem.free - gone)


def _copy_of_another(
    leaves: list[Leaf], changing: frozenset[Variable], free: frozenset[Variable]
) -> Leaf | None:
    """A leaf that equals another one once its own free variables have the other one's values."""
    for leaf, other in permutations(leaves, 2):
        if not leaf.keys or leaf.counted or leaf.label != other.label:
            continue
        elsewhere = _held(one for one in leaves if one is not leaf)
        own = (leaf.variables & changing) - elsewhere
        image = {
            held: there
            for (_, held), (_, there) in zip(leaf.columns, other.columns, strict=True)
            if held in own and (there in free or leaf.variables <= free)
        }
        if own and leaf.substituted(image).columns == other.columns:
            return leaf
    return None


def separate(problem: Problem, planner: Planner) -> Sum | None:
    """Counts per value of the free variables that parts share; None where that saves nothing.

    The largest of these counts is the largest count of the problem.
    """
    if problem.output is not None:
        return None
    parts = _parts(problem)
    free = [part.free for part in parts]
    shared = frozenset[Variable]().union(
        *(one & other for i, one in enumerate(free) for other in free[:i])
    )
    # The largest count of a part that shares nothing is a row also where the part is empty.
    if shared == problem.free or any(one.isdisjoint(shared) for one in free):
        return None
    inputs: list[Input] = []
    cost = 0.0
    for part in parts:
        solved = planner.covered(part)
        inputs.append(_largest(solved, shared))
        cost += solved.cost + STEP
    inside = frozenset[Condition]().union(*(part.conditions for part in parts))
    join = Join(tuple(inputs), tuple(c for c in problem.conditions if c not in inside))
    kept = Problem(problem.leaves, shared, problem.inequalities, problem.others)
    return Sum(kept, (Term(1, join),), cost)


def _largest(solved: Sum, shared: frozenset[Variable]) -> Input:
    """The largest count of a part for each value of the variables that it shares."""
    (term,) = solved.terms
    part = solved.problem
    join = term.join
    if not unique_rows(join, part.free):
        grouped = Grouping(join, part.free)
        if part.free <= shared:
            return grouped
        join = Join((grouped,))
    return Grouping(join, part.free & shared, largest=not part.free <= shared)


def _parts(problem: Problem) -> list[Problem]:
    """The leaves that variables which are not free, or conditions across them, hold together."""
    groups: list[tuple[Leaf, ...]] = []
    for leaf in problem.leaves:
        inner = leaf.variables - problem.free
        groups = _merged(groups, [g for g in groups if not inner.isdisjoint(_held(g))], leaf)
    while across := next(filter(None, (_across(groups, c) for c in problem.conditions)), None):
        groups = _merged(groups, across)
    parts = []
    for leaves in groups:
        held = _held(leaves)
        parts.append(
            Problem(
                leaves=leaves,
                free=problem.free & held,
                inequalities=frozenset(p for p in problem.inequalities if p.variables <= held),
                others=tuple(c for c in problem.others if c.variables <= held),
            )
        )
    return parts


def _across(groups: list[tuple[Leaf, ...]], condition: Condition) -> list[tuple[Leaf, ...]]:
    """The groups that only together can read a condition, if one of them has a variable alone.

    Where all its variables are shared, it is read when the groups are joined.
    """
    held = [_held(group) for group in groups]
    if any(condition.variables <= variables for variables in held):
        return []
    if all(sum(v in variables for variables in held) > 1 for v in condition.variables):
        return []
    return [
        group
        for group, variables in zip(groups, held, strict=True)
        if not condition.variables.isdisjoint(variables)
    ]


def _merged(
    groups: list[tuple[Leaf, ...]], some: list[tuple[Leaf, ...]], *more: Leaf
) -> list[tuple[Leaf, ...]]:
    one = (*(leaf for group in some for leaf in group), *more)
    return [*(group for group in groups if group not in some), one]


def _held(leaves: Iterable[Leaf]) -> frozenset[Variable]:
    return frozenset[Variable]().union(*(leaf.variables for leaf in leaves))
