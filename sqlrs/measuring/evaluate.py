"""Residuals -> their values on a snapshot, one by one or several in one statement."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import islice
from typing import TypeVar

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.engines.base import Snapshot, integers, rows_for_good
from sqlrs.measuring.read_from_groups import Batch, ReadFromGroups
from sqlrs.measuring.sampling import SampledTables
from sqlrs.planning.chained import chained
from sqlrs.planning.choose import choose
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS, Solved
from sqlrs.planning.key_joins import joins_two_by_several
from sqlrs.planning.leading import Leaders, leaders_of_whole_tables
from sqlrs.planning.limits import frequency_of, limit, of_whole_tables, without_conditions
from sqlrs.planning.plan import (
    ByKeptGroups,
    Factorised,
    InWords,
    Leading,
    Plain,
    ResidualPlan,
    table_names,
)
from sqlrs.planning.problem import Problem
from sqlrs.planning.rows_for_groups import rows_for_groups
from sqlrs.planning.sharing import that_share, with_shared_steps
from sqlrs.planning.table_statistics import Columns, Statistics
from sqlrs.planning.total_lookups import Inclusion, without_total_lookups
from sqlrs.query import Query, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sql.leading_groups import NOT_ENOUGH
from sqlrs.sql.together import MOST_COST, Stepped, batches, together
from sqlrs.sql.write import statement_of
from sqlrs.trees.kept import Kept

Made = TypeVar("Made")

# About a tenth of a second.
_WORTH_SHARING = 2e6
_COST_OF_A_SECOND = 2e7
# Rows to each result of two tables that are quicker joined than grouped first. A condition on a
# third table may have hidden many of their results, hardly that many.
_FEW_RESULTS = 100
# The same where no condition can have hidden any.
_FEWER_RESULTS = 2


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The private value of one residual, the plan that gave it and the seconds it took."""

    residual: Residual
    value: int
    plan: ResidualPlan
    seconds: float

    def __repr__(self) -> str:
        return "Evaluation(private)"

    def copied(self, residual: Residual) -> Evaluation:
        """The same for an isomorphic residual, at no further cost."""
        if residual.members == self.residual.members:
            return self
        return replace(self, residual=residual, seconds=0.0)


@dataclass(repr=False)
class Enough:
    """The residuals that were enough, the limits then, and how often these were met. Private."""

    members: set[Members] = field(default_factory=set)
    limits: Mapping[Members, int] = field(default_factory=dict)
    times: int = 0

    def begin(self, limits: Mapping[Members, int]) -> None:
        """By better limits others may be enough."""
        if self.limits != limits:
            self.members.clear()
            self.times = 0
        self.times += 1

    def __repr__(self) -> str:
        return "Enough(private)"


@dataclass(frozen=True)
class Evaluator:
    """Evaluates residuals of one query on one snapshot.

    ``sampled``: what is read of the tables already, and what others may read of them later.
    ``alone``: only the query itself is evaluated, none of its residuals.
    """

    snapshot: Snapshot
    query: Query
    dialect: str
    how: str = "auto"
    solver_seconds: float = DEFAULT_SOLVER_SECONDS
    sampled: SampledTables = field(default_factory=SampledTables, compare=False, repr=False)
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)
    alone: bool = False

    @cached_property
    def statistics(self) -> Statistics | None:
        """Sizes and repetition; a plain plan needs none, nor does one table: it is read once."""
        if self.how == "plain" or len(self.query.atoms) == 1:
            return None
        whole = dialect_named(self.dialect).whole_columns
        return self.sampled.of(self.snapshot, self.query, alone=self.alone, whole=whole)

    def __call__(self, residual: Residual) -> Evaluation:
        """Plan one residual and run its statement."""
        plan = self._plan(residual)
        start = time.perf_counter()
        value = self._value(plan)
        return Evaluation(residual, value, plan, time.perf_counter() - start)

    def together(self, residuals: Iterable[Residual]) -> Iterator[Batch]:
        """Several residuals in few statements that share their work, each yet to be run."""
        # A plan may be that of a residual without some lookups. Those that can share come together.
        planned = sorted(
            ((one, self._plan(one)) for one in residuals),
            key=lambda one: isinstance(one[1], Stepped),
        )
        read = self._from_groups
        for way in (read.in_chains, read.of_one_join, read.by_kept_groups):
            found = list(way(planned))
            yield from found
            taken = {residual.members for one in found for residual in one.residuals}
            planned = [one for one in planned if one[0].members not in taken]
        own = (residual for residual, _ in planned)
        for batch in batches(plan for _, plan in planned):
            several = 1
            if isinstance(batch, list):
                several = len(batch)
                batch = self.once(tuple(batch), partial(with_shared_steps, batch), "shared")
            yield Batch(tuple(islice(own, several)), partial(self._values, batch))

    def beside(self, chosen: Sequence[Residual], others: Sequence[Residual]) -> list[Residual]:
        """Those of the others that are had for next to nothing in the statement of the chosen.

        Where that takes little, so would a statement of their own, which may never be needed.
        """
        first = [*map(self._plan, chosen)]
        cost = sum(plan.cost for plan in first if isinstance(plan, Stepped))
        if not _WORTH_SHARING <= cost <= MOST_COST:
            return []
        plans = [self._plan(one) for one in others]
        sharing = that_share(first, plans)
        if cost + sum(plan.cost for plan in sharing if isinstance(plan, Stepped)) > MOST_COST:
            return []
        return [one for one, plan in zip(others, plans, strict=True) if plan in sharing]

    def chained(self, residuals: Sequence[Residual]) -> Batch | None:
        """All of them in one statement that reads each table once, where that is better."""
        most = dialect_named(self.dialect).most_chained
        if self.how != "auto" or not 1 < len(residuals) <= most:
            return None
        plans = chained(residuals)
        return None if plans is None else Batch(tuple(residuals), partial(self._values, [*plans]))

    def reduced(self, residual: Residual, keys: frozenset[Variable] = frozenset()) -> Residual:
        """A residual with the same value, without the lookups that are known to change no count.

        ``keys``: the value is wanted for each value of these.
        """
        fixed = rows_for_good(self.snapshot)
        if fixed is None or self.how != "auto" or self.statistics is None:
            return residual
        found: dict[str, Residual] = self.kept.of((fixed, residual), dict, detail=("reduced", keys))
        if "for good" in found:
            return found["for good"]
        unknown: list[Inclusion] = []

        def holds(inclusion: Inclusion) -> bool:
            known = self.sampled.holds(self.snapshot, inclusion)
            if known is None:
                unknown.append(inclusion)
            return bool(known)

        smaller = without_total_lookups(residual, holds, keys)
        if unknown:
            # What would be asked next, if these hold, is wished for at the same time.
            without_total_lookups(residual, lambda one: holds(one) or one in unknown, keys)
        # What is written for it is found by the very same object.
        if found.setdefault("now", smaller).members != smaller.members:
            found["now"] = smaller
        if not unknown:
            found["for good"] = found["now"]
        return found["now"]

    def together_with(self, one: Residual, among: Sequence[Residual]) -> Batch | None:
        """One residual and those of its join, of queries too; None where there are no others."""
        if not any(residual is one for residual in among):
            return None
        planned = [(residual, self._plan(residual)) for residual in among]
        for way in (self._from_groups.in_chains, self._from_groups.of_one_join):
            found = list(way(planned))
            for batch in found:
                if any(residual is one for residual in batch.residuals):
                    return batch
            taken = {id(residual) for batch in found for residual in batch.residuals}
            planned = [own for own in planned if id(own[0]) not in taken]
        return None

    @cached_property
    def _from_groups(self) -> ReadFromGroups:
        return ReadFromGroups(self)

    def whole(self, residual: Residual) -> Residual | None:
        """One of whole tables whose value is a limit, where such are kept and it is not its own."""
        if rows_for_good(self.snapshot) is None:
            return None
        whole = self.once((residual,), lambda: without_conditions(residual), "whole")
        return whole and self.reduced(whole)

    def pays(self, whole: Residual) -> bool:
        """Whether earlier releases spent as much without a value of whole tables as it costs."""
        spent = self.sampled.spent_before(self.snapshot, self.known_as(whole)[1])
        return spent >= _WORTH_SHARING and spent >= self.expected_cost(whole)

    def note(self, whole: Residual, seconds: float) -> None:
        """Keep in mind what was spent for want of a value of whole tables."""
        cost = seconds * _COST_OF_A_SECOND
        self.sampled.spend(self.snapshot, self.known_as(whole)[1], cost)

    def _values(self, batch: ResidualPlan | list[Stepped]) -> list[int]:
        if isinstance(batch, list):
            statement = self.once(tuple(batch), lambda: together(batch, self.dialect), "together")
            found = integers(self.snapshot.rows(statement))
            return [self.settled(plan, n) for plan, n in zip(batch, found, strict=True)]
        return [self._value(batch)]

    def _plan(self, whole: Residual) -> ResidualPlan:
        residual = self.reduced(whole)

        def chosen() -> ResidualPlan:
            return choose(
                residual,
                self.statistics,
                how=self.how,
                solver_seconds=self.solver_seconds,
                in_turn=True,
                quick=dialect_named(self.dialect).quick_rows,
                words=dialect_named(self.dialect).sums_words,
            )

        plan = self.once((residual,), chosen, ("plan", self.how, self.solver_seconds))
        return self._by_kept_groups(self._still(plan))

    def _still(self, plan: ResidualPlan) -> ResidualPlan:
        """The plan, or the other one of an attempt that was not enough on these very rows.

        Two tables that turned out to have few results in common are joined as they are.
        """
        while isinstance(plan, Leading | InWords) and self._failed(plan):
            plan = plan.otherwise
        return next(iter(self._joined_as_rows(plan)), plan)

    def _joined_as_rows(self, plan: ResidualPlan) -> list[ResidualPlan]:
        """What counts a join as it is, if it is known to have few results; it stays known."""
        return self.once((plan,), list[ResidualPlan], "few results")

    def _failed(self, plan: ResidualPlan) -> set[bool]:
        """Whether an attempt was not enough; what is said once is known of these rows for good."""
        return self.once((plan,), set[bool], "failed")

    def _by_kept_groups(self, plan: ResidualPlan) -> ResidualPlan:
        """The groups that lead in whole tables, where they are known and were enough so far."""
        fixed, statistics = rows_for_good(self.snapshot), self.statistics
        if fixed is None or statistics is None or self.how != "auto" or _is_particular(plan):
            return plan
        if not dialect_named(self.dialect).keeps_texts_private:
            # The groups would stand in the statement.
            return plan
        if tried := self._tried(plan):
            return tried[-1]
        leaders = self._leaders(plan.residual, statistics)
        if leaders is None:
            return plan
        # Of a join in the engine's own order a limit, or few of the groups, can save nearly all.
        saved = _expected_cost(plan, statistics)
        if isinstance(plan, Stepped):
            saved -= leaders.exact.cost
        if saved <= 0:
            return plan
        groups = self.sampled.groups(self.snapshot, leaders, self.dialect, saved)
        if groups is None:
            return plan
        tried.append(ByKeptGroups.of(plan, leaders, groups, statistics) or plan)
        return tried[-1]

    def _tried(self, plan: ResidualPlan) -> list[ResidualPlan]:
        """What was run in place of a plan, by the groups that lead; the last one is the best."""
        return self.once((plan,), list[ResidualPlan], "tried")

    def _leaders(self, residual: Residual, statistics: Statistics) -> Leaders | None:
        return self.once(
            (residual,),
            lambda: leaders_of_whole_tables(
                Problem.of(residual), statistics, table_names(residual)
            ),
            "leaders",
        )

    def limits(self, residuals: Sequence[Residual]) -> dict[Members, int]:
        """What no value exceeds, by the statistics; nothing where none are read."""
        statistics = self.statistics
        if statistics is None:
            return {}
        known = self.sampled.known_so_far(self.snapshot)
        limits = self.once(tuple(residuals), dict[object, dict[Members, int]], "limits")
        if known not in limits:
            limits.clear()
            frequencies = dict(self.sampled.frequencies(self.snapshot))
            now = replace(statistics, frequencies=frequencies)
            limits[known] = {r.members: self._limit(r, now) for r in residuals}
        return limits[known]

    def known_as(self, residual: Residual) -> tuple[Columns | None, Hashable]:
        """What a value that is one of whole tables is kept under: a frequency's, or another's."""
        made = partial(_known_as, residual)
        return self.once((residual,), made, "known as")

    def _limit(self, whole: Residual, statistics: Statistics) -> int:
        residual = self.reduced(whole)
        most = limit(residual, statistics)
        if (without := self.whole(whole)) is not None:
            values = self.sampled.values(self.snapshot)
            most = min(most, values.get(self.known_as(without)[1], most))
        if residual.external or residual.output is not None or self.how != "auto":
            return most
        leaders = self._leaders(residual, statistics)
        groups = leaders and self.sampled.known_groups(self.snapshot, leaders)
        return most if groups is None else min(most, groups.most)

    def expected_cost(self, residual: Residual) -> float:
        """What the planner expects of the statement of a residual."""
        statistics = self.statistics
        return 0.0 if statistics is None else _expected_cost(self._plan(residual), statistics)

    def kept_choices(self, residuals: Residuals) -> Enough:
        """The residuals that were enough last time, where the rows are the same; may be changed."""
        return self.once((residuals,), Enough, "enough")

    def once(self, about: tuple[object, ...], make: Callable[[], Made], what: Hashable) -> Made:
        """What is made once for the same rows, if they are known to be the same."""
        fixed = rows_for_good(self.snapshot)
        return make() if fixed is None else self.kept.of((fixed, *about), make, detail=what)

    def settled(self, plan: ResidualPlan, value: int) -> int:
        """The value, by another plan where the groups that lead, or the digits, were not enough."""
        if isinstance(plan, Leading | InWords) and value == NOT_ENOUGH:
            self._failed(plan).add(True)
            return self._value(plan.otherwise)
        if isinstance(plan, ByKeptGroups) and value < plan.groups.least:
            # They will not be enough on these rows again.
            self._tried(plan.otherwise).append(plan.otherwise)
            return self._value(plan.otherwise)
        if isinstance(plan, ByKeptGroups):
            self._shorten(plan, value)
        if isinstance(plan, Factorised) and not plan.residual.boundary and self.how == "auto":
            self._note_few_results(plan, value)
        return value

    def _note_few_results(self, plan: Factorised, value: int) -> None:
        """Of a count that turned out to be small, keep how it is joined without grouping first."""
        # Of other rows nothing is learned, and no statistics are read for it.
        if rows_for_good(self.snapshot) is None or self.statistics is None:
            return
        residual, known = plan.residual, self._joined_as_rows(plan)
        rows = sum(self.statistics.size(one.table) for one in residual.atoms)
        if known or residual.output is not None:
            return
        if _FEW_RESULTS * value <= rows and joins_two_by_several(residual.atoms):
            known.append(Plain(residual, "few results"))
        elif _FEWER_RESULTS * value <= rows and (other := rows_for_groups(plan)) is not None:
            known.append(other)

    def _shorten(self, plan: ByKeptGroups, value: int) -> None:
        """Of groups that were enough keep those that were needed: they are again on these rows."""
        statistics, tried = self.statistics, self._tried(plan.otherwise)
        whole = self.sampled.known_groups(self.snapshot, plan.leaders)
        if statistics is None or plan.groups is not whole:
            return
        fewer = whole.that_may_reach(value)
        if fewer is not whole:
            tried.append(ByKeptGroups.of(plan.otherwise, plan.leaders, fewer, statistics) or plan)
        elif plan.leaders.exact.cost >= _expected_cost(plan.otherwise, statistics):
            tried.append(plan.otherwise)

    def _value(self, plan: ResidualPlan) -> int:
        if isinstance(plan, Solved):
            from sqlrs.measuring.solver import solve

            return solve(plan, self.snapshot.rows(self._statement(plan)))
        if (value := self._from_groups.numbered(plan)) is not None:
            return value
        return self.settled(plan, self.snapshot.scalar(self._statement(plan)))

    def _statement(self, plan: ResidualPlan) -> exp.Select:
        return self.once((plan,), lambda: statement_of(plan, self.dialect), "statement")


def _is_particular(plan: ResidualPlan) -> bool:
    """Whether a residual has more to it than rows that are joined, compared and counted."""
    residual = plan.residual
    return bool(residual.external or residual.generals or residual.output is not None)


def _known_as(residual: Residual) -> tuple[Columns | None, Hashable]:
    return frequency_of(residual), of_whole_tables(residual)


def _expected_cost(plan: ResidualPlan, statistics: Statistics) -> float:
    """What the planner expects; of an engine's own order, that every row is read and joined."""
    if isinstance(plan, Stepped):
        return plan.cost
    return 2 * sum(statistics.size(atom.table) for atom in plan.residual.atoms)
