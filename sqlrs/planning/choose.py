"""One residual -> the plan that evaluates it."""

from __future__ import annotations

from sqlrs.errors import UsageError
from sqlrs.planning.external import external_plan
from sqlrs.planning.inclusion_exclusion import Solver
from sqlrs.planning.plan import HOW, Factorised, Plain, Plan, Pruned, table_names
from sqlrs.planning.problem import Problem
from sqlrs.planning.prune import prune
from sqlrs.planning.smt import DEFAULT_SOLVER_SECONDS, Solved
from sqlrs.planning.statistics import Statistics
from sqlrs.residuals import Residual


def choose(
    residual: Residual,
    statistics: Statistics | None = None,
    *,
    how: str = "auto",
    dialect: str,
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
) -> Plan:
    """The plan for a residual; ``how`` forces one. Statistics guide the choice, never the value.

    External variables have one plan each, by the shape of the residual, whatever ``how`` says.
    """
    if how not in HOW:
        raise UsageError(f"there is no plan {how!r}", hint=f"one of {', '.join(HOW)}")
    if residual.external:
        across = any(not p.variables.isdisjoint(residual.external) for p in residual.generals)
        return Solved(residual, solver_seconds) if across else external_plan(residual)
    if how == "plain":
        return Plain(residual)
    solver = Solver(statistics or Statistics())
    problem = Problem.of(residual)
    total = solver.solve(problem)
    if how == "factorised":
        return Factorised(residual, total, dialect)
    pruning = prune(problem, solver, table_names(residual))
    if pruning is None or (how == "auto" and total.cost <= pruning.cost):
        return Factorised(residual, total, dialect)
    return Pruned(residual, pruning, dialect)
