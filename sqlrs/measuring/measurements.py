"""The measurements that a mechanism may ask for, on one snapshot and in few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from sqlrs.engines.base import Measurable
from sqlrs.errors import EngineFailed
from sqlrs.measures import KeyDomain, Ordinals, Signed
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.groups import NumberedGroups, can_measure_by_group
from sqlrs.measuring.measure import Measured
from sqlrs.measuring.work import Progress, Values, Work
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS
from sqlrs.planning.limits import limit
from sqlrs.query import Term
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
        work = Work(residuals, wanted, self.progress)
        values = self._enough(work, fold)
        return Measured(values[residuals.query.everything], work.values(values))

    def values(self, residuals: Residuals, wanted: Iterable[Members], fold: Fold | None) -> Values:
        """The same values without the count."""
        work = Work(residuals, wanted, self.progress, counted=False)
        return work.values(self._enough(work, fold))

    def totals(
        self, signed: Signed, residuals: Residuals, domains: Sequence[KeyDomain]
    ) -> dict[Ordinals, int]:
        """The true value of a query in each group, by one statement; where none is, it is 0.

        The coefficient is not applied. ``residuals`` are those of the query.
        """
        if residuals.query != signed.query:
            raise ValueError("these are the residuals of another query")
        groups = NumberedGroups(signed.keys, tuple(domains))
        whole = residuals.of(residuals.query.everything)
        with self._evaluator(residuals) as evaluator:
            self._hear(1, 1, whole)
            return groups.totals(whole, evaluator)

    def values_by_group(
        self,
        residuals: Residuals,
        wanted: Iterable[Members],
        keys: tuple[Term | None, ...],
        domains: Sequence[KeyDomain],
    ) -> dict[Ordinals, Values]:
        """Every wanted T_E on the rows of each group, for all groups that there are.

        One statement for each part of a residual. ``can_measure_by_group`` must hold.
        """
        sets = tuple(wanted)
        if not can_measure_by_group(residuals, sets, keys):
            raise ValueError("a residual cannot be measured by groups")
        groups = NumberedGroups(keys, tuple(domains))
        parts = residuals.undecided(sets)
        with self._evaluator(residuals) as evaluator:
            found: dict[Ordinals, _Known] = {group: {} for group in groups.all(evaluator)}
            for position, part in enumerate(parts, 1):
                self._hear(position, len(parts), part)
                if groups.divide(part):
                    here = groups.largest(part, evaluator)
                else:
                    here = dict.fromkeys(found, evaluator(part).value)
                if not here.keys() <= found.keys():
                    raise EngineFailed("the database found rows in a group that is not there")
                for group, known in found.items():
                    known[part.members] = here.get(group, 0)
        assemble = cache(lambda known: residuals.assemble(sets, dict(known)))
        return {group: assemble(tuple(known.items())) for group, known in found.items()}

    def _enough(self, work: Work, fold: Fold | None) -> _Known:
        with self._evaluator(work.residuals) as evaluator:
            limits = {} if fold is None else _limits(work, evaluator)
            if fold is None or not limits:
                return _run(work, evaluator, work.statements)
            return limits | _until_settled(work, evaluator, fold, limits)

    @contextmanager
    def _evaluator(self, residuals: Residuals) -> Iterator[Evaluator]:
        with self.source.snapshot() as snapshot:
            yield Evaluator(
                snapshot, residuals.query, self.source.dialect, self.plan, self.solver_seconds
            )

    def _hear(self, position: int, number: int, part: Residual) -> None:
        if self.progress is not None:
            self.progress(position, number, str(part))


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
