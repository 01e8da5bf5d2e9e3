"""Residuals of one query -> plans that grow out of each other, where every join stays small.

Where reading a table again costs more than anything else, the groups of one residual are the input
of the next: lineitem by order, those with their orders by customer, those with the customers in
all. Each table is read once, and no statistics are needed: every join has at most as many rows as
one of its inputs. docs/proofs/plans.md, section 11, proves the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlrs.compiler.forms import tells_equal_values_apart
from sqlrs.planning.bags import Grouping, Join, placed
from sqlrs.planning.inclusion_exclusion import Sum, Term
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.planning.leaves import TableRows
from sqlrs.planning.plan import Factorised
from sqlrs.planning.problem import Problem
from sqlrs.query import Atom, Variable
from sqlrs.residuals.residual import Residual

# Groups by more columns than these are hardly fewer than the rows that they stand for.
_MOST_KEPT = 2
_DIRECT = "joined by keys: no join has more rows than one table"
_GROWN = "the groups of {} are the input: no table is read twice"


def chained(residuals: Iterable[Residual]) -> list[Factorised] | None:
    """The plans in the same order; None where one of them is not of this kind."""
    given = list(residuals)
    found: dict[int, Factorised] = {}
    for place in sorted(range(len(given)), key=lambda i: len(given[i].members)):
        plan = _plan(given[place], list(found.values()))
        if plan is None:
            return None
        found[place] = plan
    return [found[place] for place in range(len(given))]


def _plan(residual: Residual, smaller: Sequence[Factorised]) -> Factorised | None:
    if residual.external or residual.output is not None:
        return None
    if any(map(tells_equal_values_apart, residual.generals)):
        return None
    problem = _problem(residual)
    leaves = _by_member(residual, problem)
    for one in sorted(smaller, key=lambda plan: -len(plan.residual.members)):
        if one.residual.members < residual.members and _grows(one, residual, problem):
            (term,) = one.total.terms
            groups = Grouping(term.join, one.residual.boundary)
            rest = [leaves[i] for i in sorted(residual.members - one.residual.members)]
            return _factorised(
                residual, problem, Join((groups, *rest)), _GROWN.format(one.residual)
            )
    if len(residual.atoms) > 1 and not joins_by_keys(residual.atoms):
        return None
    return _factorised(residual, problem, Join(problem.leaves), _DIRECT)


def _problem(residual: Residual) -> Problem:
    """With NULL left out in all that is joined, declared or not: so an engine sees equal steps."""
    problem = Problem.of(residual)
    joined = residual.query.never_null
    leaves = []
    for leaf in problem.leaves:
        assert isinstance(leaf, TableRows)
        leaves.append(replace(leaf, guarded=frozenset(c for c, v in leaf.columns if v in joined)))
    return replace(problem, leaves=tuple(leaves))


def _by_member(residual: Residual, problem: Problem) -> Mapping[int, TableRows]:
    leaves = (leaf for leaf in problem.leaves if isinstance(leaf, TableRows))
    return dict(zip(sorted(residual.members), leaves, strict=True))


def _factorised(residual: Residual, problem: Problem, bare: Join, reason: str) -> Factorised | None:
    join, held = placed(bare, problem.conditions)
    if held != frozenset(problem.conditions):
        return None
    return Factorised(residual, Sum(problem, (Term(1, join),), 0.0), reason)


def _grows(smaller: Factorised, residual: Residual, problem: Problem) -> bool:
    """Whether the groups of a residual and the rows of the other atoms say all of a larger one."""
    (term,) = smaller.total.terms
    kept, inside = smaller.residual.boundary, smaller.residual.variables
    if not 1 <= len(kept) <= _MOST_KEPT or not term.join.applied <= frozenset(problem.conditions):
        return False
    atoms = residual.query.atoms
    rest = [atoms[i] for i in sorted(residual.members - smaller.residual.members)]
    needed = residual.boundary.union(*(atom.variables for atom in rest))
    needed = needed.union(*(c.variables for c in problem.conditions if c not in term.join.applied))
    return needed & inside <= kept and _stays_small(kept, rest)


def _stays_small(kept: frozenset[Variable], rest: Iterable[Atom]) -> bool:
    """Whether groups, one for each value of what is kept, meet few rows of the other atoms.

    Either each group finds one row of an atom by a key; or, at first, each row of an atom finds
    one group. The atoms after it are found by their keys.
    """
    waiting, known, first = list(rest), kept, True
    while waiting:
        found = next((a for a in waiting if any(key <= known for key in a.keys)), None)
        if found is None and first:
            found = next((a for a in waiting if kept <= a.variables), None)
            first = False
        if found is None:
            return False
        waiting.remove(found)
        known |= found.variables
    return True
