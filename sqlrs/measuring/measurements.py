"""The measurements that a mechanism may ask for, on one snapshot and in few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from sqlrs.engines.base import Measurable, Opened, Row, Snapshot
from sqlrs.errors import EngineFailed
from sqlrs.measures import (
    Contributions,
    KeyDomain,
    Ordinals,
    OwnedResults,
    PerUnit,
    Signed,
)
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.measure import Measured
from sqlrs.measuring.read_on_the_way import ReadOnTheWay, is_grouped_table
from sqlrs.measuring.sampling import SampledTables
from sqlrs.measuring.settling import Known, read_before, run, until_settled
from sqlrs.measuring.work import Fold, Folding, Progress, Values, Work
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS
from sqlrs.query import Term
from sqlrs.records import dataclass
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.trees.kept import Kept

if TYPE_CHECKING:
    # A single count does without groups and units.
    from sqlrs.measuring.groups import NumberedGroups, ReadDomains
    from sqlrs.measuring.read_totals import ReadTotals

_Found = TypeVar("_Found")
_Expected = tuple[Signed, Residuals, Sequence[KeyDomain]]


@dataclass(frozen=True)
class Measurements:
    """Where a release measures, by which plans, and who hears of it.

    ``fetch_limit``: of tables elsewhere so many bytes may be joined here.
    """

    source: Measurable
    plan: str = "auto"
    solver_seconds: float = DEFAULT_SOLVER_SECONDS
    progress: Progress | None = None
    sampled: SampledTables = field(default_factory=SampledTables, compare=False, repr=False)
    read: dict[int, ReadTotals] = field(default_factory=dict, compare=False, repr=False)
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)
    beside: ReadOnTheWay = field(default_factory=ReadOnTheWay, compare=False, repr=False)
    domains: ReadDomains | None = field(default=None, compare=False, repr=False)
    expected: list[_Expected] = field(default_factory=list, compare=False, repr=False)
    fetch_limit: int = 0

    def count(self, residuals: Residuals) -> int:
        """The true count alone."""
        return self.enough(residuals, (), None).count

    def enough(
        self, residuals: Residuals, wanted: Iterable[Members], fold: Fold | Folding | None
    ) -> Measured:
        """The count, and values that fold to the same as all T_E; without a fold, all of them.

        The fold must not fall where a value grows. Then residuals that cannot change its result
        any more are left out, and a limit stands for their value: docs/proofs/plans.md, section 8.
        ``progress`` hears of them all the same: which they are follows from the data.
        """
        wanted = tuple(wanted)
        here = self._here(residuals, lambda own, same: own.enough(same, wanted, fold))
        if here is not None:
            return here
        work = Work(residuals, wanted, self.progress, factors=_factors(fold))
        values, settled = self._enough(work, fold)
        count = values[residuals.query.everything]
        return Measured(count, work.values(values), settled=settled)

    def values(
        self, residuals: Residuals, wanted: Iterable[Members], fold: Fold | Folding | None
    ) -> Values:
        """The same values without the count."""
        wanted = tuple(wanted)
        here = self._here(residuals, lambda own, same: own.values(same, wanted, fold))
        if here is not None:
            return here
        work = Work(residuals, wanted, self.progress, counted=False, factors=_factors(fold))
        return work.values(self._enough(work, fold)[0])

    def _is_fetched(self, residuals: Residuals) -> bool:
        """Whether the tables are elsewhere and small."""
        if self.fetch_limit == 0 or self.plan != "auto" or not isinstance(self.source, Opened):
            return False
        from sqlrs.measuring.fetching import is_fetched

        return is_fetched(residuals, self.source, self.fetch_limit, self.kept)

    def _here(
        self, residuals: Residuals, measure: Callable[[Measurements, Residuals], _Found]
    ) -> _Found | None:
        """What is measured in this process, where the tables are elsewhere and small."""
        if self.fetch_limit == 0 or self.plan != "auto" or not isinstance(self.source, Opened):
            return None
        from sqlrs.measuring.fetching import fetched, forget

        try:
            here = fetched(residuals, self.source, self.fetch_limit, self.kept)
            if here is None:
                return None
            # What is kept of rows that end with this release is of no use to the next one.
            return measure(Measurements(here.source, progress=self.progress), here.residuals)
        except EngineFailed as failed:
            if failed.code != "out_of_memory":
                raise
        # It goes on where the rows are, which may have more room.
        forget(self.source)
        return None

    def totals(
        self, signed: Signed, residuals: Residuals, domains: Sequence[KeyDomain]
    ) -> dict[Ordinals, int]:
        """The true value of a query in each group, by one statement; where none is, it is 0.

        The coefficient is not applied. ``residuals`` are those of the query.
        """
        if residuals.query != signed.query:
            raise ValueError("these are the residuals of another query")
        if (read := self.read.get(id(signed))) is not None and read.of(signed, domains):
            self._hear(1, 1, residuals.of(residuals.query.everything))
            return read.numbers
        # The weights of distinct outputs are added up by a statement of their own alone.
        if not domains and not (residuals.query.weighted and residuals.query.distinct is not None):
            count = self._here(residuals, lambda own, same: own.count(same))
            if count is not None:
                return {(): count}
        from sqlrs.measuring.groups import NumberedGroups

        groups = NumberedGroups(signed.keys, tuple(domains), self._rows_of(domains))
        whole = residuals.of(residuals.query.everything)
        with self._evaluator(residuals) as evaluator:
            self._hear(1, 1, whole)
            if any(own is residuals for _, own, _ in self.expected):
                for part in self.kept.of((residuals,), partial(_grouped_alone, residuals)):
                    found = groups.totals_beside_largest(whole, part, evaluator)
                    if found is not None:
                        totals, largest = found
                        if largest is not None:
                            self.beside.learn(residuals, part.members, largest)
                        return totals
            if not domains and (count := self._beside_count(residuals, evaluator)) is not None:
                return {(): count}
            return groups.totals(whole, evaluator)

    def _beside_count(self, own: Residuals, evaluator: Evaluator) -> int | None:
        """A count with all of the same join that is about to be wanted, as it was last time."""
        everything = own.query.everything
        if (read := self.beside.read(own, everything)) is not None or self.plan != "auto":
            return read
        wanted = {
            id(part): (part, residuals)
            for _, residuals, domains in self.expected
            for members in {residuals.query.everything, *evaluator.kept_choices(residuals).members}
            for part in [residuals.of(members)]
            # A sum is of no join's groups, and one of distinct outputs is never evaluated.
            if not domains
            and not part.weighted
            and self.beside.read(residuals, part.members) is None
        }
        batch = evaluator.together_with(own.of(everything), [part for part, _ in wanted.values()])
        if batch is None:
            return None
        for part, value in zip(batch.residuals, batch.run(), strict=True):
            self.beside.learn(wanted[id(part)][1], part.members, value)
        return self.beside.read(own, everything)

    def read_ahead(self, wanted: Iterable[tuple[Signed, Residuals, Sequence[KeyDomain]]]) -> None:
        """Read the totals that one statement has for several queries; ``totals`` has them then.

        All that is wanted is about to be measured, on the snapshot that is open: of an engine,
        which opens another one each time, nothing is read.
        """
        if self.plan != "auto" or not isinstance(self.source, Opened):
            return
        from sqlrs.measuring.read_totals import read_side_by_side

        terms = list(wanted)
        if any(not domains and self._is_fetched(residuals) for _, residuals, domains in terms):
            return
        self.expected.extend(terms)
        self.beside.expect(residuals for _, residuals, _ in terms)
        parts = [(signed, domains) for signed, _, domains in terms]
        objects = tuple(one for signed, domains in parts for one in (signed, *domains))
        for together in self.kept.of(objects, lambda: list(read_side_by_side(parts))):
            with self.source.snapshot() as snapshot:
                evaluator = Evaluator(
                    snapshot, together.sides.query, self.source.dialect, kept=self.kept
                )
                for one in together.read(evaluator, self._rows_of(together.domains)):
                    self.read[id(one.signed)] = one

    def values_by_group(
        self,
        residuals: Residuals,
        wanted: Iterable[Members],
        keys: tuple[Term | None, ...],
        domains: Sequence[KeyDomain],
    ) -> dict[Ordinals, Values]:
        """Every wanted T_E on the rows of each group, for all groups that there are.

        One statement for each part of a residual that is not like an earlier one.
        ``can_measure_by_group`` must hold.
        """
        from sqlrs.measuring.groups import NumberedGroups, can_measure_by_group

        sets = tuple(wanted)
        if not can_measure_by_group(residuals, sets, keys):
            raise ValueError("a residual cannot be measured by groups")
        groups = NumberedGroups(keys, tuple(domains), self._rows_of(domains))
        parts = residuals.undecided(sets)
        with self._evaluator(residuals) as evaluator:
            found: dict[Ordinals, Known] = {group: {} for group in groups.all(evaluator)}
            same = representatives(parts, groups.variables)
            for position, part in enumerate(parts, 1):
                self._hear(position, len(parts), part)
                if (one := same[part.members]) is not part:
                    for known in found.values():
                        known[part.members] = known[one.members]
                    continue
                if groups.divide(part):
                    here = self._with_totals(groups, part, residuals, evaluator)
                    if here is None:
                        here = groups.largest(part, evaluator)
                else:
                    here = dict.fromkeys(found, evaluator(part).value)
                if not here.keys() <= found.keys():
                    raise EngineFailed("the database found rows in a group that is not there")
                for group, known in found.items():
                    known[part.members] = here.get(group, 0)
        assemble = cache(lambda known: residuals.assemble(sets, dict(known)))
        return {group: assemble(tuple(known.items())) for group, known in found.items()}

    def contributions(
        self,
        parts: Sequence[tuple[Signed, Residuals]] | PerUnit,
        domains: Sequence[KeyDomain],
        grid: Sequence[int],
    ) -> Contributions:
        """What the units contribute to each group, by how much that is in all; one statement."""
        from sqlrs.measuring.contributions import contributions, planned_term

        with self.source.snapshot() as snapshot:
            if isinstance(parts, PerUnit):
                return contributions(snapshot, parts, domains, grid, self.source.dialect, self.kept)
            terms = []
            for position, (signed, residuals) in enumerate(parts, 1):
                if residuals.query != signed.query:
                    raise ValueError("these are the residuals of another query")
                self._hear(position, len(parts), residuals.of(residuals.query.everything))
                evaluator = self._evaluator_on(snapshot, residuals, alone=True)
                terms.append(planned_term(signed, residuals, evaluator))
            return contributions(snapshot, terms, domains, grid, self.source.dialect, self.kept)

    def owned_results(self, signed: Signed, residuals: Residuals, most: int) -> OwnedResults:
        """The results of a query by their owners, by one statement."""
        if residuals.query != signed.query:
            raise ValueError("these are the residuals of another query")
        from sqlrs.measuring.owned_results import read_owned_results

        with self.source.snapshot() as snapshot:
            evaluator = self._evaluator_on(snapshot, residuals, alone=True)
            self._hear(1, 1, residuals.of(residuals.query.everything))
            return read_owned_results(signed, residuals, most, evaluator)

    def _enough(self, work: Work, fold: Fold | Folding | None) -> tuple[Known, Fraction | None]:
        """Values that are enough, and what they fold to where that is known."""
        with self._evaluator(work.residuals) as evaluator:
            known = self.beside.known(work, evaluator.snapshot, evaluator.kept)
            waiting = [part for part in work.statements if part.members not in known]
            if (chain := evaluator.chained(waiting)) is not None:
                work.hear(len(work.statements))
                values = zip(chain.residuals, chain.run(), strict=True)
                return known | {part.members: value for part, value in values}, None
            known |= read_before(work, evaluator)
            known |= self._of_other_queries(work, evaluator, known)
            if fold is None or evaluator.statistics is None:
                found = run(work, evaluator, work.statements, known)
                work.hear(len(work.statements))
                return found, None
            folding = fold if isinstance(fold, Folding) else Folding.exactly(fold)
            found, settled = until_settled(work, evaluator, folding, known)
            if len(self.expected) > 1:
                for part in work.took_long():
                    self.beside.learn_long(evaluator.reduced(part), found[part.members])
            return found, settled

    def _of_other_queries(self, work: Work, evaluator: Evaluator, known: Known) -> Known:
        """Values that took long and were another query's as well, of those of one statement."""
        whole = work.residuals.query.everything
        waiting = [p for p in work.statements if p.members not in known and p.members != whole]
        read = {p.members: self.beside.of_another(evaluator.reduced(p)) for p in waiting}
        return {members: value for members, value in read.items() if value is not None}

    @contextmanager
    def _evaluator(self, residuals: Residuals) -> Iterator[Evaluator]:
        with self.source.snapshot() as snapshot:
            yield self._evaluator_on(snapshot, residuals)

    def _evaluator_on(
        self, snapshot: Snapshot, residuals: Residuals, *, alone: bool = False
    ) -> Evaluator:
        return Evaluator(
            snapshot,
            residuals.query,
            self.source.dialect,
            self.plan,
            self.solver_seconds,
            self.sampled,
            self.kept,
            alone,
        )

    def _with_totals(
        self, groups: NumberedGroups, part: Residual, residuals: Residuals, evaluator: Evaluator
    ) -> dict[Ordinals, int] | None:
        """T_E of each group by a statement that reads totals which are still wanted, if one can."""
        from sqlrs.measuring.read_totals import ReadTotals

        for signed, own, domains in self.expected:
            if (
                id(signed) not in self.read
                and own is residuals
                and signed.keys == groups.keys
                and ReadTotals(signed, groups.domains, {}).of(signed, domains)
            ):
                whole = residuals.of(residuals.query.everything)
                if (found := groups.largest_beside_totals(part, whole, evaluator)) is not None:
                    self.read[id(signed)] = ReadTotals(signed, groups.domains, found[1])
                    return found[0]
        return None

    def _rows_of(self, domains: Sequence[KeyDomain]) -> tuple[tuple[Row, ...], ...] | None:
        return None if self.domains is None else self.domains.of(domains)

    def _hear(self, position: int, number: int, part: Residual) -> None:
        if self.progress is not None:
            self.progress(position, number, str(part))


def _grouped_alone(residuals: Residuals) -> list[Residual]:
    """The residuals of one private table that a bound may need, grouped by their boundary."""
    private = residuals.query.private
    return [
        part
        for part in residuals.undecided(residuals.required)
        if part.members <= private and is_grouped_table(part)
    ]


def _factors(fold: Fold | Folding | None) -> Mapping[Members, tuple[Members, ...]]:
    return fold.factors if isinstance(fold, Folding) else {}
