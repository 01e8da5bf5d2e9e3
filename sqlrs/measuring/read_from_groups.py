"""Residuals that one statement reads from the groups of a join, and whether these are few."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlrs.dialects import dialect_named
from sqlrs.engines.base import integers, rows_for_good
from sqlrs.planning.kept_together import KeptTogether, kept_together
from sqlrs.planning.plan import ByKeptGroups, Plain, ResidualPlan
from sqlrs.planning.rolling_up import Joined, RolledUp, are_few, as_joined, rolled_up
from sqlrs.planning.witness_chains import WitnessChain, witness_chains
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual
from sqlrs.sql.plain import plain_numbered
from sqlrs.sql.rolled_up import rolled_up_statement
from sqlrs.sql.witness_chain import chain_statement

if TYPE_CHECKING:
    from sqlrs.measuring.evaluate import Evaluator


@dataclass(frozen=True)
class Batch:
    """Residuals of one statement, and the call that runs it for their values, in order."""

    residuals: tuple[Residual, ...]
    run: Callable[[], list[int]]


@dataclass(frozen=True)
class ReadFromGroups:
    """Reads residuals from the groups of joins, as an evaluator runs statements."""

    evaluator: Evaluator

    def in_chains(self, planned: Sequence[tuple[Residual, ResidualPlan]]) -> Iterator[Batch]:
        """Residuals of the same rows with more and more witnesses, and the counts of these."""
        evaluator = self.evaluator
        if evaluator.how == "auto" and dialect_named(evaluator.dialect).regroups_many:
            plans = tuple(plan for _, plan in planned)
            of = {id(plan): residual for residual, plan in planned}
            for chain in evaluator.once(plans, partial(witness_chains, plans), "witnesses"):
                own = tuple(of[id(plan)] for plan in chain.plans)
                yield Batch(own, partial(self._values_of_a_chain, chain))

    def of_one_join(self, planned: Sequence[tuple[Residual, ResidualPlan]]) -> Iterator[Batch]:
        """Residuals that are read from the groups of others, by one statement."""
        evaluator = self.evaluator
        dialect = dialect_named(evaluator.dialect)
        if evaluator.how == "auto" and dialect.regroups:
            plans = tuple(plan for _, plan in planned)
            of = {id(as_joined(plan)): residual for residual, plan in planned}
            few = tuple(
                one for plan in plans if (one := as_joined(plan)) and True in self._known(one)
            )
            made = partial(rolled_up, plans, evaluator.statistics, few, many=dialect.regroups_many)
            for several in evaluator.once((*plans, *few), made, ("of one join", len(few))):
                own = tuple(of[id(plan)] for plan in several.plans)
                yield Batch(own, partial(self._values_of_one_join, several))

    def by_kept_groups(self, planned: Sequence[tuple[Residual, ResidualPlan]]) -> Iterator[Batch]:
        """Residuals by groups of one join that lead, by one statement."""
        of = {id(plan): residual for residual, plan in planned}
        plans = tuple(plan for _, plan in planned if isinstance(plan, ByKeptGroups))
        made = partial(kept_together, plans, self.evaluator.statistics)
        for several in self.evaluator.once(plans, made, "kept together") if plans else ():
            own = tuple(of[id(plan)] for plan in several.plans)
            yield Batch(own, partial(self._values_by_kept_groups, several))

    def numbered(self, plan: ResidualPlan) -> int | None:
        """The value of a join by its boundary, where it is asked beside whether groups are few."""
        if not isinstance(plan, Plain) or not plan.residual.boundary or not self._unknown(plan):
            return None
        value, number = integers(self.evaluator.snapshot.rows(plain_numbered(plan.residual)))
        self._learn(plan, number)
        return value

    def _values_of_one_join(self, several: RolledUp) -> list[int]:
        evaluator, plans = self.evaluator, several.plans
        wanted = tuple(i for i in several.begun if self._unknown(plans[i]))
        statement = evaluator.once(
            plans,
            lambda: rolled_up_statement(several, evaluator.dialect, numbered=wanted),
            ("rolled up", several.parents, wanted),
        )
        found = integers(evaluator.snapshot.rows(statement))
        for i, number in zip(wanted, found[len(plans) :], strict=True):
            self._learn(plans[i], number)
        return found[: len(plans)]

    def _values_of_a_chain(self, chain: WitnessChain) -> list[int]:
        evaluator = self.evaluator
        made = partial(chain_statement, chain, evaluator.dialect)
        statement = evaluator.once(chain.plans, made, "witness chain")
        return integers(evaluator.snapshot.rows(statement))

    def _values_by_kept_groups(self, several: KeptTogether) -> list[int]:
        evaluator = self.evaluator
        statement = evaluator.once(
            several.plans,
            lambda: rolled_up_statement(several.joined, evaluator.dialect, among=several.among),
            "by kept groups",
        )
        found = integers(evaluator.snapshot.rows(statement))
        return [evaluator.settled(plan, n) for plan, n in zip(several.plans, found, strict=True)]

    def _known(self, plan: Joined) -> list[bool]:
        """Whether a join has few groups, with which larger ones better begin, where that is known.

        How many there are is not kept: a query's constants have a part in it.
        """
        return self.evaluator.once((plan,), list[bool], "few groups")

    def _unknown(self, plan: Joined) -> bool:
        """Whether to count the groups of a join: later releases on these rows may begin with them.

        Of rows that may change nothing is known later.
        """
        evaluator = self.evaluator
        return (
            evaluator.how == "auto"
            and evaluator.statistics is not None
            and dialect_named(evaluator.dialect).regroups
            and rows_for_good(evaluator.snapshot) is not None
            and not self._known(plan)
        )

    def _learn(self, plan: Joined, number: int) -> None:
        if (statistics := self.evaluator.statistics) is not None:
            self._known(plan).append(are_few(number, plan.residual, statistics))
