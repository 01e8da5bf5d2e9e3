"""A count of two tables with lookups that turned out to have few results: they are joined as rows.

Whoever does not know how many rows agree groups one side first. docs/proofs/plans.md, section 6a,
has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlrs.planning.bags import Grouping, Input, Join
from sqlrs.planning.leaves import TableRows
from sqlrs.planning.plan import Factorised


def rows_for_groups(plan: Factorised) -> Factorised | None:
    """The same count with the rows of its one step in place of their groups.

    None where a join could then have more rows than a table, or than there are results.
    """
    if plan.residual.boundary or plan.residual.output is not None or len(plan.total.terms) > 1:
        return None
    (term,) = plan.total.terms
    join = term.join
    steps = [one for one in join.inputs if isinstance(one, Grouping)]
    beside = [one for one in join.inputs if not isinstance(one, Grouping)]
    if len(steps) != 1 or not beside or term.coefficient != 1:
        return None
    # A condition across both sides would hide how many rows agree.
    if any(all(not c.variables <= one.variables for one in join.inputs) for c in join.conditions):
        return None
    (step,) = steps
    if step.largest or step.distinct is not None or step.unique:
        return None
    if not _lead_by_keys(beside) or not _lead_by_keys(step.join.inputs):
        return None
    rows = replace(step, opened=True)
    inputs = tuple(rows if one is step else one for one in join.inputs)
    total = replace(plan.total, terms=(replace(term, join=Join(inputs, join.conditions)),))
    return replace(plan, total=total, ways=(), reason="few results: rows are joined as they are")


def _lead_by_keys(inputs: Sequence[Input]) -> bool:
    """Whether one of the tables leads to all others by their keys."""
    return any(_leads(inputs, first) for first in inputs)


def _leads(inputs: Sequence[Input], first: Input) -> bool:
    known, waiting = first.variables, [one for one in inputs if one is not first]
    while waiting:
        found = [
            one
            for one in waiting
            if isinstance(one, TableRows) and any(key <= known for key in one.keys)
        ]
        if not found:
            return False
        known = known.union(*(one.variables for one in found))
        waiting = [one for one in waiting if one not in found]
    return isinstance(first, TableRows)
