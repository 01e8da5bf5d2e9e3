"""Largest counts without most of the groups: bound every group, evaluate only those that may win.

For each value of a boundary variable a cheap problem bounds the counts of all groups with that value.
The values with the largest bounds are evaluated first; the best of them rules out every value whose
bound does not exceed it. The rest is evaluated exactly. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from sqlrs import emit
from sqlrs.emit import RESULTS
from sqlrs.identifiers import column, identifier
from sqlrs.planning.factorise import Statement, column_names, free_name
from sqlrs.planning.inclusion_exclusion import Solver, Sum, Term
from sqlrs.planning.problem import Leaf, Problem
from sqlrs.query import Variable

_SEEDS = 16


@dataclass(frozen=True)
class Bound:
    """An upper bound of every group that holds a value of ``variable``."""

    variable: Variable
    total: Sum
    seeds: Leaf
    survivors: Leaf


@dataclass(frozen=True)
class Pruning:
    """The bounds, the first of which also gives the seeds, and both exact evaluations."""

    bounds: tuple[Bound, ...]
    seeded: Sum
    rest: Sum

    @property
    def cost(self) -> float:
        """Expected for a maximum that stands out."""
        return sum(b.total.cost for b in self.bounds) + self.seeded.cost + 2 * self.rest.cost


def prune(problem: Problem, solver: Solver, reserved: frozenset[str]) -> Pruning | None:
    """The pruned evaluation of a problem with free variables, or None where nothing can be bound."""
    if not problem.free or problem.output is not None:
        return None
    bounds = [_bound(problem, v, solver, reserved) for v in sorted(problem.free)]
    seeded = [(solver.solve(problem.restricted([b.seeds])), b) for b in bounds]
    first, chosen = min(seeded, key=lambda pair: pair[0].cost + pair[1].total.cost)
    limit = chosen.total.cost + first.cost
    used = [chosen, *(b for b in bounds if b is not chosen and b.total.cost <= limit)]
    rest = solver.solve(problem.restricted([b.survivors for b in used]))
    return Pruning(tuple(used), first, rest)


def bounding(problem: Problem, variable: Variable) -> Problem:
    """A problem of which the value bounds all groups with one value of ``variable``.

    Each leaf gives up the other free variables and counts their most frequent values instead; a
    leaf with a key and nothing left counts at most once and goes.
    """
    others = problem.free - {variable}
    leaves = []
    for leaf in problem.leaves:
        kept = tuple((c, v) for c, v in leaf.columns if v not in others)
        if len(kept) == len(leaf.columns):
            leaves.append(leaf)
        elif kept or not leaf.keys:
            gone = tuple(c for c, v in leaf.columns if v in others)
            keys = (frozenset(v for _, v in kept),) if leaf.keys else ()
            leaves.append(replace(leaf, columns=kept, maximised=gone, keys=keys))
    return Problem(
        leaves=tuple(leaves),
        free=frozenset({variable}),
        inequalities=frozenset(p for p in problem.inequalities if p.variables.isdisjoint(others)),
        others=tuple(c for c in problem.others if c.variables.isdisjoint(others)),
    )


def pruned_statement(pruning: Pruning, dialect: str, reserved: frozenset[str]) -> exp.Select:
    """One statement: bounds, seeds, the best of them, survivors, and the largest of all."""
    building = Statement(dialect, reserved)
    named: list[tuple[Bound, str, str]] = []
    for bound in pruning.bounds:
        rows, columns = building.totals(bound.total)
        name = building.add(f"bound_{columns[bound.variable]}", rows)
        named.append((bound, name, columns[bound.variable]))
    first, source, key = named[0]
    building.add(
        str(first.seeds.table),
        exp.select(column(key, source))
        .from_(identifier(source))
        .order_by(
            exp.Ordered(this=column(RESULTS, source), desc=True),
            exp.Ordered(this=column(key, source)),
        )
        .limit(_SEEDS),
    )
    best = building.add("best_seed", _best(building, pruning.seeded, "seed_results"))
    for bound, name, key in named:
        survivors = (
            exp.select(column(key, name))
            .from_(identifier(name))
            .join(identifier(best), join_type="cross")
            .where(exp.GT(this=column(RESULTS, name), expression=column(RESULTS, best)))
        )
        if bound is first:
            seeds = str(first.seeds.table)
            already = exp.select(column(key, seeds)).from_(identifier(seeds))
            survivors = survivors.where(
                exp.Not(this=exp.In(this=column(key, name), query=already.subquery()))
            )
        building.add(str(bound.survivors.table), survivors)
    rest = building.add("best_survivor", _best(building, pruning.rest, "survivor_results"))
    return building.finished(
        exp.select(
            exp.alias_(
                exp.Greatest(this=column(RESULTS, best), expressions=[column(RESULTS, rest)]),
                RESULTS,
            )
        )
        .from_(identifier(best))
        .join(identifier(rest), join_type="cross")
    )


def _bound(problem: Problem, variable: Variable, solver: Solver, reserved: frozenset[str]) -> Bound:
    easier = bounding(problem, variable)
    found = solver.bound(easier)
    names = column_names(problem.free)
    key = column_names([variable])[variable]

    def leaf(kind: str) -> Leaf:
        name = free_name(f"{kind}_{names[variable]}", set(reserved))
        return Leaf(name, name, ((key, variable),), keys=(frozenset({variable}),))

    total = Sum(easier, (Term(1, found.join),), found.cost)
    return Bound(variable, total, leaf("seeds"), leaf("survivors"))


def _best(building: Statement, total: Sum, name: str) -> exp.Select:
    rows, _ = building.totals(total)
    kept = building.add(name, rows)
    return exp.select(
        exp.alias_(
            exp.Coalesce(this=exp.Max(this=column(RESULTS, kept)), expressions=[emit.number(0)]),
            RESULTS,
        )
    ).from_(identifier(kept))
