"""The measurements that a mechanism may ask for, on one snapshot and in few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from sqlrs.engines.base import Measurable
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.measure import Measured
from sqlrs.measuring.work import Progress, Values, Work
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS
from sqlrs.planning.limits import limit
from sqlrs.residuals.residual import Members, Residual, Residuals

Fold = Callable[[Values], Fraction]
_Known = dict[Members, int]


@dataclass(frozen=True)
class Measurements:
    """Where a release measures, by which plans, and who hears of it."""

    source: Measurable
    plan: str = "auto"
    solver_seconds: float = DEFAULT_SOLVER_SECONDS
    progress: Progress | None = None

    def count(self, residuals: Residuals) -> int:
        """The true count alone."""
        return self.enough(residuals, (), None).count

    def enough(
        self, residuals: Residuals, wanted: Iterable[Members], fold: Fold | None
    ) -> Measured:
        """The count, and values that fold to the same as all T_E; without a fold, all of them.

        The fold must not fall where a value grows. Then residuals that cannot change its result
        any more are left out, and a limit stands for their value: docs/proofs/plans.md, section 8.
        ``progress`` hears of them all the same: which they are follows from the data.
        """
        query = residuals.query
        work = Work(residuals, wanted, self.progress)
        with self.source.snapshot() as snapshot:
            evaluator = Evaluator(
                snapshot, query, self.source.dialect, self.plan, self.solver_seconds
            )
            limits = {} if fold is None else _limits(work, evaluator)
            if fold is None or not limits:
                values = _run(work, evaluator, work.statements)
            else:
                values = limits | _until_settled(work, evaluator, fold, limits)
        return Measured(values[query.everything], work.values(values))


def _limits(work: Work, evaluator: Evaluator) -> _Known:
    """What no value exceeds, by the statistics; nothing where none are read."""
    statistics = evaluator.statistics
    if statistics is None:
        return {}
    return {part.members: limit(part, statistics) for part in work.statements}


def _run(work: Work, evaluator: Evaluator, parts: Iterable[Residual]) -> _Known:
    """The values of some residuals."""
    known: _Known = {}
    for batch in evaluator.together(parts):
        work.hear(*batch.residuals)
        known |= zip((part.members for part in batch.residuals), batch.run(), strict=True)
    return known


def _until_settled(work: Work, evaluator: Evaluator, fold: Fold, limits: _Known) -> _Known:
    """The values of ever smaller residuals, until those that are left cannot change the fold."""
    known: _Known = {}
    nothing = dict.fromkeys(limits, 0)
    settled = False
    for parts in work.rounds():
        if settled:
            work.hear(*parts)
            continue
        known |= _run(work, evaluator, parts)
        if known.keys() != limits.keys():
            settled = fold(work.values(nothing | known)) == fold(work.values(limits | known))
    return known
