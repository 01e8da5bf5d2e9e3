"""One residual -> the plan that evaluates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sqlrs.compiler.forms import tells_equal_values_apart
from sqlrs.errors import UsageError
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS, external_plan
from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.key_joins import has_condition, joins_by_keys
from sqlrs.planning.leading import leaders
from sqlrs.planning.limits import limit_of_steps
from sqlrs.planning.passing import passed
from sqlrs.planning.plan import (
    HOW,
    Factorised,
    InWords,
    Leading,
    Plain,
    Pruned,
    PrunedSemiJoins,
    ResidualPlan,
    SemiJoins,
    table_names,
)
from sqlrs.planning.problem import Problem
from sqlrs.planning.prune import prune
from sqlrs.planning.separate import reduced, separate
from sqlrs.planning.shared_digits import sharings
from sqlrs.planning.symmetry import ordered
from sqlrs.planning.table_statistics import Statistics
from sqlrs.planning.witnesses import by_keys, witnessed
from sqlrs.planning.words import packings
from sqlrs.query import closure
from sqlrs.residuals.residual import Residual

# Below this cost, about a hundredth of a second, there is nothing to gain from another plan.
_QUICK = 200_000.0
# Below this one, about a tenth of a second, there is none from words.
_WORTH_PACKING = 2_000_000.0
# Of fewer rows all witnesses are found in a few milliseconds.
_MANY_ROWS = 200_000.0
# Groups that lead serve several residuals, of which each plan bears a part.
_SHARED = 2.0


class Rewrite(NamedTuple):
    """Another way to the same largest count, None where it does not apply, and what it does.

    ``quick``: it is tried even where there is hardly anything to gain.
    """

    way: Callable[[Problem, Planner], Sum | None]
    does: str = ""
    quick: bool = False


REWRITES = (
    Rewrite(separate, quick=True),
    Rewrite(ordered, "; of exchangeable variables the first is the most frequent"),
    Rewrite(passed, "; rows beyond a value are a running sum"),
)


def choose(
    residual: Residual,
    statistics: Statistics | None = None,
    *,
    how: str = "auto",
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
    in_turn: bool = False,
    run: bool = False,
    quick: float | None = None,
    words: bool = False,
) -> ResidualPlan:
    """The plan for a residual; ``how`` forces one. Statistics guide the choice, never the value.

    ``in_turn``: whoever runs it can run a second statement where the first one is not enough.
    ``run``: the statement is run as it is, on data of which nothing is known beforehand.
    ``quick``: up to this cost every group is counted as it stands, in few steps; None: as usual.
    ``words``: the database sums numbers of 128 bits.
    Where a residual has external variables, its shape alone decides the plan.
    """
    if how not in HOW:
        raise UsageError(f"there is no plan {how!r}", hint=f"one of {', '.join(HOW)}")
    if residual.external:
        return external_plan(residual, solver_seconds)
    if how == "plain":
        return Plain(residual)
    if any(map(tells_equal_values_apart, residual.generals)):
        return Plain(residual, reason="a condition can tell equal values apart: none are grouped")
    own = (in_turn or run) and how == "auto"
    if own and (found := _semi_joins(residual, statistics)) is not None:
        return found
    if own and _is_one_table_with_lookups(residual):
        return Plain(residual, reason="joined by keys: no join has more rows than one table")
    plan = _factorised_or_pruned(residual, statistics, how, quick or _QUICK)
    if not in_turn or how != "auto":
        return plan
    in_turns = _leading(plan, statistics, quick or _QUICK)
    return _in_words(in_turns, statistics) if words else in_turns


def _factorised_or_pruned(
    residual: Residual, statistics: Statistics | None, how: str, quick: float
) -> Factorised | Pruned:
    """The cheapest way to count every group, or bounds that leave few groups to be counted."""
    planner = Planner(statistics or Statistics())
    narrow = _problem(residual)
    wide = narrow.freed(residual.determined)
    total, problem = _direct(reduced(narrow), planner, statistics)
    if wide.free != narrow.free:
        total, problem = min(
            (total, problem),
            _direct(reduced(wide), planner, statistics),
            key=lambda way: way[0].cost,
        )
    if how == "auto" and total.cost <= quick:
        return Factorised(residual, total, reason="quick as it is")
    apart = separate(problem, planner)
    ways = (total,) if apart is None else (total, apart)
    total, saving = _cheapest(total, problem, planner, quick=False)
    if how == "factorised":
        return Factorised(residual, total)
    pruning = prune(problem, planner, table_names(residual))
    if pruning is None:
        return Factorised(residual, total, reason=_no_pruning(residual) + saving)
    if how == "pruned":
        return Pruned(residual, pruning)
    if total.cost <= pruning.cost:
        reason = f"expected to be cheaper than bounding every boundary value first{saving}"
        return Factorised(residual, total, reason=reason, ways=ways)
    reason = "few boundary values are expected to have a bound above the maximum"
    return Pruned(residual, pruning, reason=reason, ways=ways)


def _leading(
    plan: Factorised | Pruned, statistics: Statistics | None, quick: float
) -> Factorised | Pruned | Leading:
    """The groups that lead without lookups first, where that is expected to cost less."""
    problem = _problem(plan.residual)
    if plan.cost <= quick or problem.output is not None:
        return plan
    found = leaders(problem, Planner(statistics or Statistics()), table_names(plan.residual))
    if found is None or found.cost > _SHARED * plan.cost:
        return plan
    return Leading(plan.residual, found, plan)


def _in_words(plan: ResidualPlan, statistics: Statistics | None) -> ResidualPlan:
    """Counts as digits of words, where all groups are counted and that is expected to cost less."""
    if statistics is None or not isinstance(plan, Factorised) or plan.cost <= _WORTH_PACKING:
        return plan
    total, most = plan.total, partial(limit_of_steps, plan.residual, plan.total, statistics)
    ways = (*packings(total, most(), statistics), *sharings(total, most, statistics))
    found = min(ways, key=lambda one: one.cost, default=None)
    if found is None or found.cost >= plan.cost:
        return plan
    return InWords(plan.residual, found, plan)


def _semi_joins(
    residual: Residual, statistics: Statistics | None
) -> SemiJoins | PrunedSemiJoins | None:
    """Distinct outputs as rows with witnesses, where keys join all of them.

    Of many rows the counts without witnesses come first, as bounds: most rows have theirs.
    """
    found = witnessed(residual)
    if found is None or not by_keys(residual, found):
        return None
    atoms = residual.query.atoms
    rows = max((statistics or Statistics()).size(atoms[i].table) for i in found.counted)
    if not residual.boundary or not found.groups or rows < _MANY_ROWS:
        return SemiJoins(residual, found)
    return PrunedSemiJoins(residual, found)


def _is_one_table_with_lookups(residual: Residual) -> bool:
    """Whether an engine's own order is as good as any: it knows best which filter thins out.

    Without any filter, groups that lead without lookups may do.
    """
    atoms = residual.atoms
    if residual.boundary and not any(map(has_condition, atoms)) and not residual.predicates:
        return False
    return len(atoms) > 1 and joins_by_keys(atoms)


def _problem(residual: Residual) -> Problem:
    """What is to be counted: rows, where distinct outputs decide all of them."""
    problem = Problem.of(residual)
    if residual.output is None:
        return problem
    known = residual.output | residual.boundary
    rows = closure(residual.query, residual.members, known)[1]
    return replace(problem, output=None) if rows == residual.members else problem


def _direct(
    problem: Problem, planner: Planner, statistics: Statistics | None
) -> tuple[Sum, Problem]:
    """The cheapest way to count every group, with the rewrites that are tried in every case."""
    total = planner.exact(problem, thorough=statistics is not None)
    return _cheapest(total, problem, planner, quick=True)[0], problem


def _cheapest(total: Sum, problem: Problem, planner: Planner, *, quick: bool) -> tuple[Sum, str]:
    """The cheapest of a way and its rewrites of one kind, and why it is."""
    saving = ""
    for rewrite in REWRITES:
        if rewrite.quick is quick:
            other = rewrite.way(problem, planner)
            if other is not None and other.cost < total.cost:
                total, saving = other, rewrite.does
    return total, saving


def _no_pruning(residual: Residual) -> str:
    if not residual.boundary:
        return "there is no boundary: every result counts"
    if residual.output is not None:
        return "distinct outputs are counted, for which there is no cheap bound"
    return "no boundary variable bounds the counts"
