"""Residuals -> their values on one snapshot, each class of isomorphic residuals once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlrs.engines.base import Snapshot
from sqlrs.isomorphism import representatives
from sqlrs.planning.choose import choose
from sqlrs.planning.factorise import Kept
from sqlrs.planning.plan import Factorised, Plan, Pruned
from sqlrs.planning.share import keep_shared
from sqlrs.planning.smt import DEFAULT_SOLVER_SECONDS, Solved
from sqlrs.planning.statistics import Statistics
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
    materialising: bool = False,
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
    progress: Progress | None = None,
) -> list[Evaluation]:
    """T_E of every residual, in the given order.

    ``progress`` hears number, total and name of each statement before it runs. With
    ``materialising``, for which the snapshot must have been begun, steps that several statements
    share are kept as temporary tables.
    """
    wanted = list(residuals)
    same = representatives(wanted)
    chosen = list({r.members: r for r in same.values()}.values())
    statistics = None
    if how != "plain" and chosen:
        statistics = Statistics.read(snapshot, chosen[0].query)
    plans = [
        choose(residual, statistics, how=how, dialect=dialect, solver_seconds=solver_seconds)
        for residual in chosen
    ]
    kept = keep_shared(plans, snapshot, dialect) if materialising else {}
    found: dict[Members, Evaluation] = {}
    for position, plan in enumerate(plans, 1):
        if progress is not None:
            # Which plan it is follows from the data: whoever listens must not hear it.
            progress(position, len(plans), str(plan.residual))
        start = time.perf_counter()
        value = _value(plan, kept, snapshot)
        seconds = time.perf_counter() - start
        found[plan.residual.members] = Evaluation(plan.residual, value, plan, seconds)
    evaluations = []
    for residual in wanted:
        done = found[same[residual.members].members]
        if done.residual.members == residual.members:
            evaluations.append(done)
        else:
            evaluations.append(Evaluation(residual, done.value, done.plan, 0.0))
    return evaluations


def _value(plan: Plan, kept: Kept, snapshot: Snapshot) -> int:
    if isinstance(plan, Solved):
        return plan.solve(snapshot.rows(plan.statement()))
    if isinstance(plan, Factorised | Pruned):
        return snapshot.scalar(plan.statement(kept))
    return snapshot.scalar(plan.statement())
