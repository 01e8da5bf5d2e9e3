"""Counts of problems with exchangeable variables: one of them the largest, as often as there are.

The corners of a triangle can be exchanged, so its results are three times those in which the first
corner is the most frequent value of the three. These are cheaper to count: few paths pass through
nothing that is more frequent than their start. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from sqlrs.catalog import Table
from sqlrs.planning.canonical import Canonical, canonical
from sqlrs.planning.estimate import BUILD, GROUP, GROUP_ROW, PROBE, STEP
from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.leaves import Leaf, Ranked, Ranks, TableRows
from sqlrs.planning.problem import Above, Other, Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Inequality, Variable
from sqlrs.values import sort_alike

Orbit = tuple[Variable, ...]


def ordered(problem: Problem, planner: Planner) -> Sum | None:
    """The cheapest count found with one of several exchangeable variables above the others.

    None where no variables can be exchanged.
    """
    if problem.free or problem.output is not None:
        return None
    options = []
    for orbit in orbits(problem):
        restricted = first_above(problem, orbit, planner.statistics)
        total = planner.exact(restricted, thorough=True)
        terms = tuple(replace(t, coefficient=t.coefficient * len(orbit)) for t in total.terms)
        cost = total.cost + _ranking_cost(restricted, planner.statistics)
        options.append(Sum(restricted, terms, cost))
    return min(options, key=lambda total: total.cost, default=None)


def orbits(problem: Problem) -> Iterator[Orbit]:
    """Sets of variables, all different, any of which can take the place of the first.

    For each of them there is a renaming of the problem's variables that changes neither the problem
    nor the set, and that maps the first one to it.
    """
    found: dict[object, list[tuple[Variable, Canonical]]] = {}
    for variable in problem.variables:
        if _can_be_ranked(problem, variable):
            form = canonical(problem.leaves, problem.conditions, {variable: "first"})
            found.setdefault(form.form, []).append((variable, form))
    for members in found.values():
        orbit = tuple(variable for variable, _ in members)
        (_, first), *others = members
        touching = {p for p in problem.inequalities if not p.variables.isdisjoint(orbit)}
        different = {Inequality.between(a, b) for a, b in combinations(orbit, 2)}
        # An inequality with a variable outside would set a rank against a value.
        if others and touching == different and all(keeps(orbit, first, f) for _, f in others):
            yield orbit


def _can_be_ranked(problem: Problem, variable: Variable) -> bool:
    """Whether a number may stand for the variable's value: it is only joined and told apart."""
    if any(variable in condition.variables for condition in problem.others):
        return False
    holders = [leaf for leaf in problem.leaves if variable in leaf.variables]
    if not all(isinstance(x, TableRows) for x in holders):
        return False
    columns = [table.column(name) for table, name in _places(problem, variable)]
    # Ranks are made from all rows of a table, on some of which what is computed may fail.
    return sort_alike(c.type for c in columns) and all(c.computed is None for c in columns)


def _places(problem: Problem, variable: Variable) -> list[tuple[Table, str]]:
    """The columns of tables that hold a variable, each once."""
    found: dict[tuple[object, str], tuple[Table, str]] = {}
    for leaf in problem.leaves:
        for name, held in leaf.columns:
            if held == variable and isinstance(leaf, TableRows):
                found.setdefault((leaf.table.identity, name), (leaf.table, name))
    return [found[place] for place in sorted(found, key=str)]


def keeps(orbit: Orbit, first: Canonical, other: Canonical) -> bool:
    """Whether the renaming that equal forms describe maps the set to itself."""
    image = {b for a, b in zip(first.order, other.order, strict=True) if a in orbit}
    return image == set(orbit)


def first_above(problem: Problem, orbit: Orbit, statistics: Statistics) -> Problem:
    """The problem with ranks for the values of the set, the first variable's above all others."""
    first, *rest = orbit
    table, column = max(
        _places(problem, first), key=lambda place: statistics.repetition(*place).squares
    )
    narrow = statistics.rows.get(table.identity, math.inf) < 2**31
    inside: set[Variable] = set()
    leaves: list[Leaf] = []
    for leaf in problem.leaves:
        ranked = frozenset(name for name, v in leaf.columns if v in orbit)
        above = frozenset(
            (high, low)
            for high, v in leaf.columns
            for low, w in leaf.columns
            if v == first and w in rest
        )
        if above:
            inside |= leaf.variables
        if ranked:
            assert isinstance(leaf, TableRows)
            leaf = leaf.ranked(Ranks(table, column, ranked, above, narrow))
        leaves.append(leaf)
    more: list[Other] = [Above(first, v) for v in rest if v not in inside]
    return replace(
        problem,
        leaves=tuple(leaves),
        inequalities=frozenset(p for p in problem.inequalities if first not in p.variables),
        others=(*problem.others, *more),
    )


def _ranking_cost(problem: Problem, statistics: Statistics) -> float:
    """What it costs to rank the values, and to read each table with ranks once."""
    cost = 0.0
    read: set[object] = set()
    for leaf in problem.leaves:
        if not isinstance(leaf, Ranked):
            continue
        rows = statistics.size(leaf.table)
        if not read:
            values = statistics.repetition(leaf.ranks.table, leaf.ranks.column).distinct
            cost += STEP + GROUP_ROW * statistics.size(leaf.ranks.table) + (GROUP + BUILD) * values
        if leaf.label not in read:
            read.add(leaf.label)
            cost += STEP + PROBE * len(leaf.ranks.columns) * rows + rows
    return cost
