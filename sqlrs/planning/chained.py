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
from sqlrs.planning.bags import Grouping, Input, Join, placed
from sqlrs.planning.inclusion_exclusion import Sum, Term
from sqlrs.planning.key_joins import has_condition, joins_by_keys
from sqlrs.planning.leaves import TableRows
from sqlrs.planning.plan import Factorised
from sqlrs.planning.problem import Problem
from sqlrs.query import Atom, Variable
from sqlrs.residuals.residual import Residual
from sqlrs.values import behave_alike

# Groups by more columns than these are hardly fewer than the rows that they stand for.
_MOST_KEPT = 2
# A table that so many residuals read is sent to its tasks once, and not by each of them.
_READ_OFTEN = 3
_DIRECT = "joined by keys: no join has more rows than one table"
_GROWN = "the groups of {} are the input: no table is read twice"


def chained(residuals: Iterable[Residual]) -> list[Factorised] | None:
    """The plans in the same order; None where one of them is not of this kind."""
    given = list(residuals)
    sent = _sent(given)
    found: dict[int, Factorised] = {}
    for place in sorted(range(len(given)), key=lambda i: len(given[i].members)):
        plan = _plan(given[place], list(found.values()), sent)
        if plan is None:
            return None
        found[place] = plan
    return [found[place] for place in range(len(given))]


def _plan(
    residual: Residual, smaller: Sequence[Factorised], sent: Mapping[int, str]
) -> Factorised | None:
    if residual.external or residual.output is not None:
        return None
    if any(map(tells_equal_values_apart, residual.generals)):
        return None
    problem = _problem(residual, sent)
    direct = len(residual.atoms) == 1 or joins_by_keys(residual.atoms)
    for one in sorted(smaller, key=_few_groups_first):
        if direct and _hardly_fewer(one, sent):
            continue
        grown = _grown(one, residual, problem)
        if grown is not None:
            return grown
    return _factorised(residual, problem, Join(problem.leaves), _DIRECT) if direct else None


def _sent(residuals: Iterable[Residual]) -> dict[int, str]:
    """The atoms whose rows are sent to tasks once, and by which column.

    Such a table is grouped by several of its columns, which are together hardly ever repeated: its
    rows go to other tasks in any case.
    """
    found: dict[int, str] = {}
    parts = [part for part in residuals if part.boundary]
    for i, atom in enumerate(parts[0].query.atoms if parts else ()):
        read = [part for part in parts if i in part.members]
        kept = [part.boundary & atom.variables for part in read]
        wide = [variables for variables in kept if len(variables) > 1]
        columns = {term: name for name, term in atom.terms if isinstance(term, Variable)}
        if (
            len(read) >= _READ_OFTEN
            and wide
            and atom.weight is None
            and len(columns) == sum(isinstance(term, Variable) for _, term in atom.terms)
        ):
            order = [
                # A part of a key of several columns says of what the row is one of few parts.
                (not any(columns[v] in key for key in atom.table.keys), v)
                for v in frozenset().union(*wide)
            ]
            found[i] = columns[min(order)[1]]
    return found


def _problem(residual: Residual, sent: Mapping[int, str]) -> Problem:
    """With NULL left out in all that is joined, declared or not: so an engine sees equal steps."""
    problem = Problem.of(residual)
    joined = residual.query.never_null
    leaves = []
    for i, leaf in zip(sorted(residual.members), problem.leaves, strict=True):
        assert isinstance(leaf, TableRows)
        guarded = frozenset(c for c, v in leaf.columns if v in joined)
        leaf = replace(leaf, guarded=guarded)
        leaves.append(leaf.sent(sent[i]) if i in sent else leaf)
    return replace(problem, leaves=tuple(leaves))


def _few_groups_first(plan: Factorised) -> tuple[int, int]:
    """Conditions leave few groups; of as many conditions those of most tables are the shortest."""
    return -_conditions(plan.residual), -len(plan.residual.members)


def _conditions(residual: Residual) -> int:
    """How many atoms have a condition of their own."""
    compared = [p.variables for p in residual.comparisons]
    return sum(
        has_condition(atom) or any(v <= atom.variables for v in compared) for atom in residual.atoms
    )


def _hardly_fewer(smaller: Factorised, sent: Mapping[int, str]) -> bool:
    """Whether its groups are made on the spot, of rows that were sent there, and about as many."""
    kept, atoms = smaller.residual.boundary, smaller.residual.query.atoms
    by = (dict(atoms[i].terms)[sent[i]] for i in smaller.residual.members & sent.keys())
    return len(kept) > 1 and any(term in kept for term in by)


def _grown(smaller: Factorised, residual: Residual, problem: Problem) -> Factorised | None:
    """The plan that begins with the groups of a smaller residual, where they say enough of it."""
    (term,) = smaller.total.terms
    kept, inside = smaller.residual.boundary, smaller.residual.variables
    if not smaller.residual.members < residual.members:
        return None
    if not 1 <= len(kept) <= _MOST_KEPT or not term.join.applied <= frozenset(problem.conditions):
        return None
    if smaller.total.problem.free != kept:
        return None
    atoms = residual.query.atoms
    members = sorted(residual.members - smaller.residual.members)
    rest = [atoms[i] for i in members]
    needed = residual.boundary.union(*(atom.variables for atom in rest))
    needed = needed.union(*(c.variables for c in problem.conditions if c not in term.join.applied))
    if not needed & inside <= kept:
        return None
    leaves = dict(zip(sorted(residual.members), problem.leaves, strict=True))
    inputs: list[Input] = [Grouping(term.join, kept)]
    known = {i: _shared(atoms[i], residual, problem) for i in members}
    for i, shared in known.items():
        if shared is None:
            inputs.append(leaves[i])
        else:
            problem = replace(problem, free=problem.free - atoms[i].variables | shared)
            inputs.append(Grouping(Join((leaves[i],)), shared, distinct=shared))
    keys = [
        (atoms[i].variables, atoms[i].keys) if shared is None else (shared, (shared,))
        for i, shared in known.items()
    ]
    if not _stays_small(kept, keys):
        return None
    return _factorised(residual, problem, Join(tuple(inputs)), _GROWN.format(smaller.residual))


def _shared(atom: Atom, residual: Residual, problem: Problem) -> frozenset[Variable] | None:
    """What is asked of an atom whose row the boundary decides, if that is not all of it.

    Whichever row has such values, the results are as many.
    """
    if atom.weight is not None or not any(key <= residual.boundary for key in atom.keys):
        return None
    others = (one.variables for one in residual.atoms if one is not atom)
    across = (c.variables for c in problem.conditions if not c.variables <= atom.variables)
    shared = atom.variables & frozenset[Variable]().union(*others, *across)
    if not shared or any(key <= shared for key in atom.keys):
        return None
    # Of other types, values that are equal in a join may be several that are distinct.
    return shared if all(behave_alike([v.type]) for v in shared) else None


def _factorised(residual: Residual, problem: Problem, bare: Join, reason: str) -> Factorised | None:
    join, held = placed(bare, problem.conditions)
    if held != frozenset(problem.conditions):
        return None
    return Factorised(residual, Sum(problem, (Term(1, join),), 0.0), reason)


def _stays_small(
    known: frozenset[Variable],
    rest: Iterable[tuple[frozenset[Variable], tuple[frozenset[Variable], ...]]],
) -> bool:
    """Whether groups, one for each value of what is known, meet few rows of the other inputs.

    Each has variables and keys. Either each group finds one row by a key; or, at first, each row
    finds one group. The inputs after it are found by their keys.
    """
    waiting, kept, first = list(rest), known, True
    while waiting:
        found = next((one for one in waiting if any(key <= known for key in one[1])), None)
        if found is None and first:
            found = next((one for one in waiting if kept <= one[0]), None)
            first = False
        if found is None:
            return False
        waiting.remove(found)
        known |= found[0]
    return True
