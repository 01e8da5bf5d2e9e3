"""One snapshot of the data -> the count and every T_E that a bound needs. All of it is private."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqlrs.engines.base import Measurable
from sqlrs.measuring.evaluate import Evaluation, Evaluator
from sqlrs.planning.external import DEFAULT_SOLVER_SECONDS
from sqlrs.planning.limits import limit
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Members, Residual, Residuals

Progress = Callable[[int, int, str], None]
Values = Mapping[Members, int]
Fold = Callable[[Values], Fraction]


@dataclass(frozen=True, repr=False)
class Measured:
    """Private values: the true count, T_E for each wanted set, and how each part was evaluated."""

    count: int
    values: Values
    evaluations: tuple[Evaluation, ...] = ()

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
    work = _Work(residuals, tuple(wanted), progress)
    found: dict[Members, Evaluation] = {}
    with source.snapshot() as snapshot:
        evaluator = Evaluator(snapshot, residuals.query, source.dialect, plan, solver_seconds)
        for part in work.statements:
            work.hear(part)
            found[part.members] = evaluator(part)
    count = found[residuals.query.everything]
    return Measured(
        count.value,
        work.values({members: evaluation.value for members, evaluation in found.items()}),
        (count, *(found[one].copied(residuals.of(part)) for part, one in work.same.items())),
    )


def measure_for(
    fold: Fold | None,
    source: Measurable,
    residuals: Residuals,
    wanted: Iterable[Members],
    *,
    plan: str = "auto",
    solver_seconds: float = DEFAULT_SOLVER_SECONDS,
    progress: Progress | None = None,
) -> Measured:
    """The count, and values that fold to the same as all T_E; few statements, in one transaction.

    The fold must not fall where a value grows. Then residuals that cannot change its result any
    more are left out, and a limit stands for their value. ``progress`` hears of them all the same:
    which they are follows from the data.
    """
    work = _Work(residuals, tuple(wanted), progress)
    everything = residuals.query.everything
    known: dict[Members, int] = {}
    limits: dict[Members, int] = {}
    settled = False
    with source.snapshot() as snapshot:
        evaluator = Evaluator(snapshot, residuals.query, source.dialect, plan, solver_seconds)
        if fold is not None and evaluator.statistics is not None:
            limits = {p.members: limit(p, evaluator.statistics) for p in work.statements}
        for parts in work.rounds() if limits else [work.statements]:
            if settled:
                work.hear(*parts)
                continue
            for batch in evaluator.together(parts):
                work.hear(*batch.residuals)
                known |= zip((part.members for part in batch.residuals), batch.run(), strict=True)
            if fold is not None and known.keys() != limits.keys() and limits:
                nothing = dict.fromkeys(limits, 0)
                settled = fold(work.values(nothing | known)) == fold(work.values(limits | known))
    return Measured(known[everything], work.values(limits | known))


class _Work:
    """The statements of one measurement: the count and one residual of each isomorphism class."""

    def __init__(
        self, residuals: Residuals, wanted: tuple[Members, ...], progress: Progress | None
    ) -> None:
        self.residuals = residuals
        self.wanted = wanted
        self.progress = progress
        self.heard = 0
        parts = residuals.undecided(wanted)
        self.same = {part: one.members for part, one in representatives(parts).items()}
        everything = residuals.of(residuals.query.everything)
        self.statements = [everything, *(p for p in parts if self.same[p.members] == p.members)]

    def values(self, measured: Values) -> Values:
        """T_E of every wanted set from the values of the statements."""
        parts = {part: measured[one] for part, one in self.same.items()}
        return self.residuals.assemble(self.wanted, parts)

    def rounds(self) -> list[list[Residual]]:
        """The count with the largest residuals, which matter most, then ever smaller ones."""
        size: dict[Members, int] = {}
        for members in self.wanted:
            for part in self.residuals.parts(members):
                if not part.decided:
                    one = self.same[part.members]
                    size[one] = max(size.get(one, 0), len(members))
        largest = max(size.values(), default=0)
        size[self.residuals.query.everything] = largest
        return [
            [part for part in self.statements if size[part.members] == level]
            for level in sorted(set(size.values()), reverse=True)
        ]

    def hear(self, *parts: Residual) -> None:
        """Tell the listener what is next."""
        for part in parts:
            self.heard += 1
            if self.progress is not None:
                self.progress(self.heard, len(self.statements), str(part))
