"""One snapshot of the data -> the count and every T_E that a bound needs. All of it is private."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlrs.engines.base import Engine
from sqlrs.planning import Evaluation, evaluate
from sqlrs.planning.smt import DEFAULT_SOLVER_SECONDS
from sqlrs.residuals import Members, Residuals

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, repr=False)
class Measured:
    """Private values: the true count, T_E for each wanted set, and how each part was evaluated."""

    count: int
    values: Mapping[Members, int]
    evaluations: tuple[Evaluation, ...]

    def __repr__(self) -> str:
        return "Measured(private)"


def measure(
    engine: Engine,
    residuals: Residuals,
    wanted: Iterable[Members],
    *,
    plan: str = "auto",
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
    progress: Progress | None = None,
) -> Measured:
    """Evaluate the count and the wanted residuals in one read-only transaction."""
    wanted = tuple(wanted)
    everything = residuals.query.everything
    with engine.snapshot() as snapshot:
        evaluations = evaluate(
            [residuals.of(everything), *residuals.undecided(wanted)],
            snapshot,
            dialect=engine.dialect,
            how=plan,
            solver_seconds=solver_seconds,
            progress=progress,
        )
    measured = {e.residual.members: e.value for e in evaluations}
    return Measured(
        count=measured[everything],
        values=residuals.assemble(wanted, measured),
        evaluations=tuple(evaluations),
    )
