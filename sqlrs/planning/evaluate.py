"""Residuals -> their values on one snapshot, each class of isomorphic residuals once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlrs.engines.base import Snapshot
from sqlrs.isomorphism import representatives
from sqlrs.planning.choose import choose
from sqlrs.planning.plan import Plan
from sqlrs.planning.smt import DEFAULT_SOLVER_SECONDS, Solved
from sqlrs.residuals import Members, Residual

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The private value of one residual, the plan that gave it and the seconds it took."""

    residual: Residual
    value: int
    plan: Plan
    seconds: float

    def __repr__(self) -> str:
        return "Evaluation(private)"


def evaluate(
    residuals: Iterable[Residual],
    snapshot: Snapshot,
    *,
    dialect: str,
    how: str = "auto",
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
    progress: Progress | None = None,
) -> list[Evaluation]:
    """T_E of every residual. ``progress`` hears the number, the total and the name of each statement."""
    wanted = list(residuals)
    same = representatives(wanted)
    chosen = list({r.members: r for r in same.values()}.values())
    found: dict[Members, Evaluation] = {}
    for position, residual in enumerate(chosen, 1):
        plan = choose(residual, None, how=how, dialect=dialect, solver_seconds=solver_seconds)
        if progress is not None:
            progress(position, len(chosen), f"{residual} ({plan.name})")
        start = time.perf_counter()
        value = _run(plan, snapshot)
        found[residual.members] = Evaluation(residual, value, plan, time.perf_counter() - start)
    evaluations = []
    for residual in wanted:
        done = found[same[residual.members].members]
        if done.residual.members == residual.members:
            evaluations.append(done)
        else:
            evaluations.append(Evaluation(residual, done.value, done.plan, 0.0))
    return evaluations


def _run(plan: Plan, snapshot: Snapshot) -> int:
    if isinstance(plan, Solved):
        return plan.solve(snapshot.rows(plan.statement()))
    return snapshot.scalar(plan.statement())
