"""One residual -> the plan that evaluates it."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.conditions import reads_values_only
from sqlrs.equalities import behave_alike
from sqlrs.errors import UsageError
from sqlrs.planning.external import external_plan
from sqlrs.planning.inclusion_exclusion import Solver
from sqlrs.planning.passing import passed
from sqlrs.planning.plan import HOW, Factorised, Plain, Plan, Pruned, table_names
from sqlrs.planning.problem import Problem
from sqlrs.planning.prune import prune
from sqlrs.planning.separate import reduced, separate
from sqlrs.planning.smt import DEFAULT_SOLVER_SECONDS, Solved
from sqlrs.planning.statistics import Statistics
from sqlrs.planning.symmetry import ordered
from sqlrs.residuals import Residual

# Below this cost, about a hundredth of a second, there is nothing to gain from another plan.
_QUICK = 200_000.0


def choose(
    residual: Residual,
    statistics: Statistics | None = None,
    *,
    how: str = "auto",
    dialect: str,
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
) -> Plan:
    """The plan for a residual; ``how`` forces one. Statistics guide the choice, never the value.

    Where a residual has external variables, its shape alone decides the plan.
    """
    if how not in HOW:
        raise UsageError(f"there is no plan {how!r}", hint=f"one of {', '.join(HOW)}")
    if residual.external:
        return _for_external(residual, solver_seconds)
    if how == "plain":
        return Plain(residual)
    if _reads_form(residual):
        return Plain(residual, reason="a condition can tell equal values apart: none are grouped")
    solver = Solver(statistics or Statistics())
    problem = reduced(Problem.of(residual))
    total = solver.solve(problem, thorough=statistics is not None)
    separated = separate(problem, solver)
    if separated is not None and separated.cost < total.cost:
        total = separated
    if how == "auto" and total.cost <= _QUICK:
        return Factorised(residual, total, dialect, reason="quick as it is")
    saving = ""
    for other, why in (
        (ordered(problem, solver), "; of exchangeable variables the first is the most frequent"),
        (passed(problem, solver), "; rows beyond a value are a running sum"),
    ):
        if other is not None and other.cost < total.cost:
            total, saving = other, why
    if how == "factorised":
        return Factorised(residual, total, dialect)
    pruning = prune(problem, solver, table_names(residual))
    if pruning is None:
        return Factorised(residual, total, dialect, reason=_no_pruning(residual) + saving)
    if how == "pruned":
        return Pruned(residual, pruning, dialect)
    if total.cost <= pruning.cost:
        reason = f"expected to be cheaper than bounding every boundary value first{saving}"
        return Factorised(residual, total, dialect, reason=reason)
    reason = "few boundary values are expected to have a bound above the maximum"
    return Pruned(residual, pruning, dialect, reason=reason)


def _for_external(residual: Residual, solver_seconds: float) -> Plan:
    if any(not p.variables.isdisjoint(residual.external) for p in residual.generals):
        return Solved(residual, solver_seconds)
    return external_plan(residual)


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
