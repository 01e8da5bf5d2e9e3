"""Answers of a wished error: the scale first, where it is private, then the noise that it allows.

Both are charged before they are drawn, one after the other, so a crash between them leaves the
scale charged and recorded, and the answer neither charged nor given. docs/proofs/wished_error.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TypeVar

from sqlrs.answer import Answer, Wished
from sqlrs.before_charge import Ready, dry_run
from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.effort import bounded_analysis
from sqlrs.engines.base import Engine, Opened, Snapshot
from sqlrs.epsilon import parse_error
from sqlrs.errors import BudgetExhausted, NotShown, QueryRefused, SqlrsError
from sqlrs.ledger import Charge, Ledger
from sqlrs.ledger.base import add, exhausted
from sqlrs.measuring.drift import unchanged
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.sampling import PublicTables
from sqlrs.measuring.tried_constants import check_constants
from sqlrs.measuring.work import Progress
from sqlrs.mechanisms.vector_constant import ConstantVector
from sqlrs.mechanisms.wished import (
    LookedAt,
    PreparedWish,
    WishedSmooth,
    describe_chosen,
    least_epsilon,
)
from sqlrs.noise import SystemBits
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.noise.published_scale import SHAPES, PublishedScale, published_scale
from sqlrs.refusals import refusal
from sqlrs.release import Columns, guarded, release, release_table
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.constant import constant_sensitivity, is_constant
from sqlrs.sensitivity.refined import reached
from sqlrs.settings import Request, Settings, Wish
from sqlrs.table_answer import TableAnswer
from sqlrs.work_bound import refuse_too_large

_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True)
class WishDesk:
    """Where a wish is granted: the data, the ledger, and who hears of the work."""

    engine: Engine
    catalog: Catalog
    ledger: Ledger
    settings: Settings
    progress: Progress | None = None

    def measurements(self, snapshot: Snapshot) -> Measurements:
        """What may be measured on an open snapshot."""
        source = Opened(snapshot, self.engine.dialect)
        return Measurements(source, self.settings.plan, self.settings.solver_seconds, self.progress)

    def public_measurements(self, snapshot: Snapshot) -> Measurements:
        """The same before anything is charged: not even plans look at private rows."""
        return replace(self.measurements(snapshot), sampled=PublicTables())

    def public_movement(self, ready: Ready) -> tuple[Fraction, Fraction]:
        """How far one change moves the one noisy measure of a statement, and what 1 of it is worth.

        Reads public rows alone; a statement whose noise has no public width is refused.
        """
        noisy = [(asked, one) for asked, one in ready.mechanisms.items() if sum(one.prices)]
        if not noisy:
            return Fraction(0), Fraction(1)
        if len(noisy) > 1:
            raise refusal(
                "wish_unsupported",
                "an error cannot be wished for several aggregates at once; an average is two",
                hint="ask for one count or one sum, or give epsilon, with error bars",
            )
        ((asked, mechanism),) = noisy
        if not isinstance(mechanism, ConstantVector):
            raise self._no_public_width()
        bounds = mechanism.prepare().fixed
        if any(_reads_private(one.measured, one.wanted) for one in bounds):
            raise self._no_public_width()
        measurements = self.public_measurements(ready.snapshot)
        moved = mechanism.moves * sum(one.measure(measurements) for one in bounds)
        return Fraction(moved), asked[1].unit

    def _no_public_width(self) -> QueryRefused:
        if self.catalog.unit is not None:
            return refusal(
                "wish_unsupported",
                "an error cannot be wished where a unit has many rows: what the threshold cuts "
                "off has no public bound",
                hint="give epsilon; sqlrs price says what is known of the error",
            )
        return refusal(
            "wish_unsupported",
            "the noise of this statement has a private scale, and that is estimated first for "
            "one count alone",
            hint="ask for one count by itself (sqlrs count, Database.count), or give epsilon, "
            "with error bars",
        )


def release_wished(request: Request, wish: Wish, desk: WishDesk) -> Answer:
    """One count with an error of at most what is wished; the price of the request is not looked at.

    Where the maximum does not suffice the count is not released, and of a private scale its
    estimate alone is charged.
    """
    compiled = compiled_text(request.sql, desk.catalog, desk.settings, as_rows=request.as_rows)
    if isinstance(compiled, CompiledStatement):
        compiled.statement.require_count()
        epsilon = statement_epsilon(request, wish, desk)
    elif isinstance(compiled, Contradiction) or not compiled.residuals.query.private:
        # Exact, and free.
        epsilon = wish.maximum
    elif (fixed := public_sensitivity(request, compiled, desk)) is not None:
        epsilon = _least(fixed, wish.half_width, wish)
    else:
        return _TwoSteps(request, wish, desk, compiled).answer()
    answer = release(
        replace(request, epsilon=epsilon, error_bars=epsilon),
        engine=desk.engine,
        catalog=desk.catalog,
        ledger=desk.ledger,
        settings=desk.settings,
        progress=desk.progress,
    )
    return replace(answer, wished=_granted(wish)) if answer.epsilon else answer


def release_wished_table(
    request: Request, wish: Wish, desk: WishDesk, accept: Callable[[Columns], None] | None = None
) -> TableAnswer:
    """The groups of one count or sum, each with an error of at most what is wished."""
    epsilon = statement_epsilon(request, wish, desk)
    answer = release_table(
        replace(request, epsilon=epsilon, error_bars=request.error_bars and epsilon),
        engine=desk.engine,
        catalog=desk.catalog,
        ledger=desk.ledger,
        settings=desk.settings,
        progress=desk.progress,
        accept=accept,
    )
    if not answer.epsilon:
        return answer
    return replace(answer, notes=(*answer.notes, _granted(wish).in_words(answer.epsilon)))


def statement_epsilon(request: Request, wish: Wish, desk: WishDesk) -> Decimal:
    """The least price of a statement, where its noise has a public width. Reads public rows."""
    highest = replace(request, epsilon=wish.maximum, error_bars=None)
    with dry_run(highest, desk.engine, desk.catalog, desk.settings) as ready:
        ready.above.database.close()
        check_constants(ready.compiled.queries, ready.snapshot, desk.engine.dialect, request.sql)
        moved, unit = desk.public_movement(ready)
    return _least(moved, wish.half_width / unit, wish) if moved else wish.maximum


def public_sensitivity(request: Request, compiled: Compiled, desk: WishDesk) -> Fraction | None:
    """The sensitivity where the query and public tables alone fix it; reads no private row."""
    residuals = compiled.residuals
    with bounded_analysis():
        if not is_constant(residuals):
            return None
        wanted = reached(residuals)
    if _reads_private(residuals, wanted):
        return None
    same = partial(compiled.same, request.sql, settings=desk.settings)
    with unchanged(residuals.query.tables, desk.engine, desk.catalog, same) as snapshot:
        check_constants([residuals.query], snapshot, desk.engine.dialect, request.sql)
        values = desk.public_measurements(snapshot).values(residuals, wanted, None)
    return Fraction(constant_sensitivity(residuals, values))


def _reads_private(residuals: Residuals, wanted: Iterable[Members]) -> bool:
    private = residuals.query.private
    return any(part.members & private for part in residuals.undecided(tuple(wanted)))


def least_price(sensitivity: Fraction, error: Fraction, most: Decimal) -> Decimal | None:
    """The least price of Laplace noise for a public sensitivity, None where it is above."""
    return least_epsilon(sensitivity, error, 1 - DEFAULT_COVERAGE, most)


def _least(sensitivity: Fraction, error: Fraction, wish: Wish) -> Decimal:
    found = least_price(sensitivity, error, wish.maximum)
    if found is None:
        raise refusal(
            "wish_not_met",
            f"an error of at most {wish.error} needs more than epsilon {wish.maximum:f}; nothing "
            "was charged",
        )
    return found


def _granted(wish: Wish, looked: Decimal | None = None) -> Wished:
    return Wished(parse_error(wish.error), wish.maximum, looked)


@dataclass(frozen=True)
class _TwoSteps:
    """A count whose scale is private: first the scale is charged and told, then the count."""

    request: Request
    wish: Wish
    desk: WishDesk
    compiled: Compiled

    @property
    def _scale(self) -> PublishedScale:
        return published_scale(self.wish.maximum)

    def answer(self) -> Answer:
        residuals = self.compiled.residuals
        prepared = WishedSmooth(self._scale).prepare(residuals)
        refuse_too_large(residuals, prepared.smooth.wanted, self.desk.settings.sizes)
        look = scale_charge(self.request, self.compiled, self._scale)
        ledger = self.desk.ledger
        if recorded := ledger.repeat(look):
            index = index_of(recorded)
            shape = self._shape(index, Decimal(0))
            charge = self._charge(index, shape)
            if answered := ledger.repeat(charge):
                return replace(Answer.from_json(answered), repeated=True)
            ticket, looked = self._measured(prepared, charge)
            return self._noisy(looked, index, shape, ticket, charge, Decimal(0))
        left = ledger.remaining(look.analyst, look.dataset)
        if left is not None and left < self.wish.maximum:
            # What the second step costs is not known yet; who has less may be left with nothing.
            raise exhausted(
                "the analyst or the dataset",
                self.wish.maximum,
                left,
                "allow less with --max-epsilon",
            )
        ticket, looked = self._measured(prepared, look)
        index = self._drawn(lambda: looked.publish(SystemBits()), ticket)
        ledger.settle(ticket, json.dumps([{"scale": index}]))
        shape = self._shape(index, look.epsilon)
        charge = self._charge(index, shape)
        try:
            ticket = ledger.reserve(charge)
        except BudgetExhausted as problem:
            # Somebody else was quicker; only the second step is refused as if nothing was charged.
            told = f"epsilon {look.epsilon:f} was charged for the estimate of the scale"
            raise BudgetExhausted(
                f"{problem.message}; {told}", hint=problem.hint, code=problem.code
            ) from None
        return self._noisy(looked, index, shape, ticket, charge, look.epsilon)

    def _shape(self, index: int, charged: Decimal) -> int:
        """The cheapest noise that will do; what is told of the scale is released already."""
        shape = self._scale.least_shape(index, self.wish.half_width)
        if shape is not None:
            return shape
        least = self._scale.half_width(index, SHAPES[-1])
        said = (
            f"an error of at most {self.wish.error} needs more than epsilon "
            f"{self.wish.maximum:f}; by the estimate of the scale it would be {least} then"
        )
        hint = (
            "wish a larger error: with the same maximum the estimate is not charged again; "
            "another maximum needs an estimate of its own"
        )
        if charged:
            told = f"{said}; epsilon {charged:f} was charged for it"
            raise NotShown(told, hint=hint, code="wish_not_met")
        raise refusal("wish_not_met", f"{said}; nothing was charged", hint=hint)

    def _charge(self, index: int, shape: int) -> Charge:
        law = self._scale.laws[shape]
        return _charge_of(self.request, self.compiled, describe_chosen(law, index), law.epsilon)

    def _measured(self, prepared: PreparedWish, charge: Charge) -> tuple[int, LookedAt]:
        """Charge, then read; the snapshot ends before anything is drawn."""
        compiled, desk, sql = self.compiled, self.desk, self.request.sql
        same = partial(compiled.same, sql, settings=desk.settings)
        query = compiled.residuals.query
        with ExitStack() as stack:
            snapshot = stack.enter_context(unchanged(query.tables, desk.engine, desk.catalog, same))
            check_constants([query], snapshot, desk.engine.dialect, sql)
            ticket = desk.ledger.reserve(charge)
            end, measurements = stack.pop_all(), desk.measurements(snapshot)

            def work() -> LookedAt:
                with end:
                    return prepared.measure(measurements)

            looked = self._drawn(work, ticket)
        return ticket, looked

    def _noisy(
        self,
        looked: LookedAt,
        index: int,
        shape: int,
        ticket: int,
        charge: Charge,
        paid: Decimal,
    ) -> Answer:
        noisy = self._drawn(lambda: looked.noisy(index, shape, SystemBits()), ticket)
        answer = Answer(
            noisy.value,
            add(charge.epsilon, paid),
            self._scale.laws[shape].name,
            noisy.error_bars,
            wished=_granted(self.wish, paid),
        )
        self.desk.ledger.settle(ticket, answer.to_json())
        return answer

    def _drawn(self, work: Callable[[], _Outcome], ticket: int) -> _Outcome:
        """What the work gives; if it fails that is recorded, and the one error is raised."""
        outcome = guarded(work)
        if isinstance(outcome, SqlrsError):
            self.desk.ledger.fail(ticket, outcome.code)
            raise outcome
        return outcome


def scale_charge(request: Request, compiled: Compiled, scale: PublishedScale) -> Charge:
    """What the estimate of a query's scale costs."""
    return _charge_of(request, compiled, scale.describe(), scale.epsilon)


def index_of(recorded: str) -> int:
    """The estimate of a scale that was released before."""
    ((index),) = (int(one["scale"]) for one in json.loads(recorded))
    return index


def _charge_of(request: Request, compiled: Compiled, mechanism: str, epsilon: Decimal) -> Charge:
    return Charge(
        analyst=request.analyst,
        dataset=request.dataset,
        query=compiled.canonical,
        mechanism=", ".join([mechanism, *compiled.residuals.query.large_units]),
        epsilon=epsilon,
    )
