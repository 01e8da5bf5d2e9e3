"""One snapshot of the data -> the count and every T_E that a bound needs, each by itself."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from sqlrs.engines.base import Measurable
from sqlrs.measuring.evaluate import Evaluation, Evaluator
from sqlrs.measuring.work import Progress, Values, Work
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals


@dataclass(frozen=True, repr=False)
class Measured:
    """Private values: the true count, T_E for each wanted set, and how each part was evaluated.

    ``settled``: what the values fold to, where that is known already.
    """

    count: int
    values: Values
    evaluations: tuple[Evaluation, ...] = ()
    settled: Fraction | None = None

    def __repr__(self) -> str:
        return "Measured(private)"


def measure(
    source: Measurable,
    residuals: Residuals,
    wanted: Iterable[Members],
    *,
    plan: str = "auto",
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
    progress: Progress | None = None,
) -> Measured:
    """The count and all wanted residuals, one statement each, in one read-only transaction."""
    work = Work(residuals, wanted, progress)
    found: dict[Members, Evaluation] = {}
    with source.snapshot() as snapshot:
        evaluator = Evaluator(snapshot, residuals.query, source.dialect, plan, solver_seconds)
        for part in work.statements:
            work.tell(part)
            found[part.members] = evaluator(part)
    count = found[residuals.query.everything]
    return Measured(
        count.value,
        work.values({members: evaluation.value for members, evaluation in found.items()}),
        (count, *(found[one].copied(residuals.of(part)) for part, one in work.same.items())),
    )
