"""Comparisons between two leaves: a running sum counts the rows beyond each value.

For visits a and b of one person with a.at < b.at, the number of b is a function of (person, a.at):
sorted by time, it is a sum over what follows. No pair of visits is looked at. docs/proofs/plans.md
has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from sqlrs.planning.estimate import GROUP, GROUP_ROW, STEP
from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.leaves import Leaf, Passing, RunningSum, TableRows
from sqlrs.planning.problem import Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Comparison, Variable
from sqlrs.values import sort_alike


def passed(problem: Problem, planner: Planner) -> Sum | None:
    """The problem with running sums in place of comparisons; None where none can be replaced."""
    if problem.output is not None:
        return None
    cost = 0.0
    smaller = problem
    while (found := next(replacements(smaller), None)) is not None:
        smaller, leaf = found
        cost += _sorting_cost(leaf, planner.statistics)
    if smaller is problem:
        return None
    total = planner.exact(smaller, thorough=True)
    return replace(total, cost=total.cost + cost)


def replacements(problem: Problem) -> Iterator[tuple[Problem, RunningSum]]:
    """The problem with one leaf and its comparison replaced by counts, and the leaf with these."""
    for comparison in problem.others:
        if not isinstance(comparison, Comparison) or len(comparison.variables) < 2:
            continue
        for leaf in problem.leaves:
            for other in problem.leaves:
                counts = _counting(problem, comparison, leaf, other)
                if counts is not None:
                    leaves = [counts if one is other else one for one in problem.leaves]
                    others = tuple(c for c in problem.others if c is not comparison)
                    yield replace(problem, leaves=tuple(leaves), others=others), counts


def _counting(
    problem: Problem, comparison: Comparison, leaf: Leaf, other: Leaf
) -> RunningSum | None:
    """How many rows of ``other`` go with each row of ``leaf``, if that decides the comparison."""
    low, high = comparison.left, comparison.right
    assert isinstance(low, Variable) and isinstance(high, Variable)
    at, beyond = (low, high) if high in other.variables else (high, low)
    if at not in leaf.variables or at in other.variables or beyond not in other.variables:
        return None
    if not (isinstance(leaf, TableRows) and isinstance(other, TableRows)):
        return None
    elsewhere = frozenset[Variable]().union(
        problem.free,
        *(one.variables for one in problem.leaves if one is not other),
        *(c.variables for c in problem.conditions if c is not comparison),
    )
    common = other.variables & elsewhere
    if beyond in common or not common <= leaf.variables:
        return None
    mine = {v: c for c, v in reversed(leaf.columns)}
    theirs = {v: c for c, v in reversed(other.columns)}
    if len(mine) < len(leaf.columns) or len(theirs) < len(other.columns):
        return None
    pairs = [(mine[v], theirs[v]) for v in sorted(common)]
    if not all(_alike(leaf, other, *pair) for pair in (*pairs, (mine[at], theirs[beyond]))):
        return None
    passing = Passing(
        leaf, other, tuple(pairs), mine[at], theirs[beyond], at is low, comparison.strict
    )
    columns = tuple((mine[v], v) for v in sorted(common | {at}))
    return RunningSum(name=other.name, columns=columns, passing=passing)


def _alike(leaf: TableRows, other: TableRows, mine: str, theirs: str) -> bool:
    """Whether two columns can be put below each other and sorted as they are compared."""
    return sort_alike([leaf.table.column(mine).type, other.table.column(theirs).type])


def _sorting_cost(leaf: RunningSum, statistics: Statistics) -> float:
    """What it costs to group, sort and sum up the rows of both leaves."""
    tables = (leaf.passing.rows.table, leaf.passing.counted.table)
    rows = sum(statistics.size(table) for table in tables)
    return 2 * STEP + (GROUP_ROW + GROUP + 0.2 * math.log2(rows + 1)) * rows
