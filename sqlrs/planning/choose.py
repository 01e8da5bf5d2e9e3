"""One residual -> the plan that evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from sqlrs.compiler.conditions import reads_values_only
from sqlrs.errors import UsageError
from sqlrs.planning.external import DEFAULT_SOLVER_SECONDS, external_plan
from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.passing import passed
from sqlrs.planning.plan import HOW, Factorised, Plain, Plan, Pruned, table_names
from sqlrs.planning.problem import Problem
from sqlrs.planning.prune import prune
from sqlrs.planning.separate import reduced, separate
from sqlrs.planning.statistics import Statistics
from sqlrs.planning.symmetry import ordered
from sqlrs.residuals.residual import Residual
from sqlrs.values import behave_alike

# Below this cost, about a hundredth of a second, there is nothing to gain from another plan.
_QUICK = 200_000.0

# Another way to the same largest count, None where it does not apply, and what it does.
Rewrite = tuple[Callable[[Problem, Planner], Sum | None], str]
REWRITES: tuple[Rewrite, ...] = (
    (ordered, "; of exchangeable variables the first is the most frequent"),
    (passed, "; rows beyond a value are a running sum"),
)


def choose(
    residual: Residual,
    statistics: Statistics | None = None,
    *,
    how: str = "auto",
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
) -> Plan:
    """The plan for a residual; ``how`` forces one. Statistics guide the choice, never the value.

    Where a residual has external variables, its shape alone decides the plan.
    """
    if how not in HOW:
        raise UsageError(f"there is no plan {how!r}", hint=f"one of {', '.join(HOW)}")
    if residual.external:
        return external_plan(residual, solver_seconds)
    if how == "plain":
        return Plain(residual)
    if _reads_form(residual):
        return Plain(residual, reason="a condition can tell equal values apart: none are grouped")
    planner = Planner(statistics or Statistics())
    problem = reduced(Problem.of(residual))
    total = planner.exact(problem, thorough=statistics is not None)
    total, _ = _cheapest(total, ((separate, ""),), problem, planner)
    if how == "auto" and total.cost <= _QUICK:
        return Factorised(residual, total, reason="quick as it is")
    total, saving = _cheapest(total, REWRITES, problem, planner)
    if how == "factorised":
        return Factorised(residual, total)
    pruning = prune(problem, planner, table_names(residual))
    if pruning is None:
        return Factorised(residual, total, reason=_no_pruning(residual) + saving)
    if how == "pruned":
        return Pruned(residual, pruning)
    if total.cost <= pruning.cost:
        reason = f"expected to be cheaper than bounding every boundary value first{saving}"
        return Factorised(residual, total, reason=reason)
    reason = "few boundary values are expected to have a bound above the maximum"
    return Pruned(residual, pruning, reason=reason)


def _cheapest(
    total: Sum, rewrites: Sequence[Rewrite], problem: Problem, planner: Planner
) -> tuple[Sum, str]:
    """The cheapest of a way and its rewrites, and why it is."""
    saving = ""
    for rewrite, why in rewrites:
        other = rewrite(problem, planner)
        if other is not None and other.cost < total.cost:
            total, saving = other, why
    return total, saving


def _reads_form(residual: Residual) -> bool:
    """Whether a predicate may differ on values that are equal (0.0 and -0.0, 1.0 and 1.00).

    Grouping keeps one of several equal values, so a condition on groups would be a condition on
    whichever row came first.
    """
    return any(
        isinstance(p.condition, exp.Expr)
        and not reads_values_only(p.condition)
        and not all(behave_alike([v.type]) for v in p.variables)
        for p in residual.generals
    )


def _no_pruning(residual: Residual) -> str:
    if not residual.boundary:
        return "there is no boundary: every result counts"
    if residual.output is not None:
        return "distinct outputs are counted, for which there is no cheap bound"
    return "no boundary variable bounds the counts"
