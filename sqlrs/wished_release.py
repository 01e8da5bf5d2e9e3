"""Answers of a wished error: the width of the noise first, where it is private, then the noise.

wished_steps.py holds the order of the two, docs/proofs/wished_error.md why it is private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial

from sqlrs.answer import Answer, Wished
from sqlrs.before_charge import dry_run
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.effort import bounded_analysis
from sqlrs.engines.base import hold_still
from sqlrs.epsilon import parse_error
from sqlrs.ledger import Charge
from sqlrs.ledger.base import add
from sqlrs.measuring.drift import unchanged
from sqlrs.measuring.tried_constants import check_constants
from sqlrs.mechanisms import CLIPPED
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.wished import LookedAt, PreparedWish, WishedSmooth, describe_chosen
from sqlrs.mechanisms.wished_vector import WishedVector
from sqlrs.noise import RandomBits
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.noise.published_scale import SHAPES, PublishedScale, published_scale
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.release import Columns, one_number, release, release_table
from sqlrs.sensitivity.constant import constant_sensitivity, is_constant
from sqlrs.sensitivity.refined import reached
from sqlrs.settings import Request, Wish
from sqlrs.table_answer import TableAnswer
from sqlrs.wished_steps import TwoSteps, WishDesk
from sqlrs.wished_table import PublicWidth, TableSteps, reads_private, way_of
from sqlrs.work_bound import refuse_too_large


def release_wished(request: Request, wish: Wish, desk: WishDesk) -> Answer:
    """One count with an error of at most what is wished; the price of the request is not looked at.

    Where the maximum does not suffice the count is not released, and of a private width what was
    told of it alone is charged.
    """
    compiled = compiled_text(request.sql, desk.catalog, desk.settings, as_rows=request.as_rows)
    if isinstance(compiled, CompiledStatement) or request.mechanism == CLIPPED:
        if isinstance(compiled, CompiledStatement):
            compiled.statement.require_count()
        asked = replace(request, error_bars=wish.maximum)
        table, granted = _wished_table(asked, wish, desk)
        answer = one_number(table, DEFAULT_COVERAGE)
        return replace(answer, wished=granted) if answer.epsilon else answer
    if isinstance(compiled, Contradiction) or not compiled.residuals.query.private:
        # Exact, and free.
        epsilon = wish.maximum
    elif (fixed := public_sensitivity(request, compiled, desk)) is not None:
        width = PublicWidth(fixed, Fraction(1))
        epsilon = _least(width, wish)
    else:
        return CountSteps(request, wish, desk, compiled).answer()
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
    answer, granted = _wished_table(request, wish, desk, accept)
    if not answer.epsilon:
        return answer
    return replace(answer, notes=(*answer.notes, granted.in_words(answer.epsilon)))


def _wished_table(
    request: Request, wish: Wish, desk: WishDesk, accept: Callable[[Columns], None] | None = None
) -> tuple[TableAnswer, Wished]:
    """The answer of a statement, and what its wish has cost."""
    bars = None if request.error_bars is None else wish.maximum
    highest = replace(request, epsilon=wish.maximum, error_bars=bars)
    with ExitStack() as stack:
        ready = stack.enter_context(dry_run(highest, desk.engine, desk.catalog, desk.settings))
        way = way_of(request, wish, desk, ready)
        if isinstance(way, WishedVector):
            if accept is not None:
                accept(ready.above.columns)
            steps = TableSteps(request, wish, desk, ready, way, stack.pop_all())
            return steps.answer()
        ready.above.database.close()
        check_constants(ready.compiled.queries, ready.snapshot, desk.engine.dialect, request.sql)
    epsilon = wish.maximum if way is None else _least(way, wish)
    answer = release_table(
        replace(request, epsilon=epsilon, error_bars=request.error_bars and epsilon),
        engine=desk.engine,
        catalog=desk.catalog,
        ledger=desk.ledger,
        settings=desk.settings,
        progress=desk.progress,
        accept=accept,
    )
    return answer, _granted(wish)


def public_sensitivity(request: Request, compiled: Compiled, desk: WishDesk) -> Fraction | None:
    """The sensitivity where the query and public tables alone fix it; reads no private row."""
    residuals = compiled.residuals
    with bounded_analysis():
        if not is_constant(residuals):
            return None
        wanted = reached(residuals)
    if reads_private(residuals, wanted):
        return None
    same = partial(compiled.same, request.sql, settings=desk.settings)
    with unchanged(residuals.query.tables, desk.engine, desk.catalog, same) as snapshot:
        check_constants([residuals.query], snapshot, desk.engine.dialect, request.sql)
        values = desk.public_measurements(snapshot).values(residuals, wanted, None)
    return Fraction(constant_sensitivity(residuals, values))


def _least(width: PublicWidth, wish: Wish) -> Decimal:
    found = width.least(wish) if width.moved else wish.maximum
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
class CountSteps(TwoSteps[LookedAt, int, Noisy, Answer]):
    """A count over joins whose scale is private: first the scale is told, then the count."""

    request: Request
    wish: Wish
    desk: WishDesk
    compiled: Compiled
    told = "the estimate of the scale"

    @property
    def _scale(self) -> PublishedScale:
        return published_scale(self.wish.maximum)

    @cached_property
    def _prepared(self) -> PreparedWish:
        """Too much work is refused here."""
        residuals = self.compiled.residuals
        prepared = WishedSmooth(self._scale).prepare(residuals)
        refuse_too_large(residuals, prepared.smooth.wanted, self.desk.settings.sizes)
        return prepared

    @property
    def look(self) -> Charge:
        """The charge of the estimate."""
        self._prepared  # noqa: B018 - what is too much work is refused before anything is charged
        return scale_charge(self.request, self.compiled, self._scale)

    def chosen(self, index: int) -> int | None:
        """The shape of the cheapest noise that will do."""
        return self._scale.least_shape(index, self.wish.half_width)

    def least_error(self, index: int) -> str:
        """That of the largest shape."""
        return str(self._scale.half_width(index, SHAPES[-1]))

    def charge(self, index: int, chosen: int) -> Charge:
        """The charge of the count."""
        law = self._scale.of_number(chosen)
        return _charge_of(self.request, self.compiled, describe_chosen(law, index), law.epsilon)

    @contextmanager
    def reading(self) -> Iterator[Callable[[], LookedAt]]:
        """The schema is compared and constants are tried; then the count and T_E are read."""
        compiled, desk, sql = self.compiled, self.desk, self.request.sql
        same = partial(compiled.same, sql, settings=desk.settings)
        query = compiled.residuals.query
        with unchanged(query.tables, desk.engine, desk.catalog, same) as snapshot:
            check_constants([query], snapshot, desk.engine.dialect, sql)
            hold_still(snapshot, query.tables)
            yield lambda: self._prepared.measure(desk.measurements(snapshot))

    def publish(self, looked: LookedAt, bits: RandomBits) -> int:
        """The estimate of the scale."""
        return looked.publish(bits)

    def noisy(self, looked: LookedAt, index: int, chosen: int, bits: RandomBits) -> Noisy:
        """The count."""
        return looked.noisy(index, chosen, bits)

    def recorded(self, noisy: Noisy, chosen: int, charge: Charge, paid: Decimal) -> str:
        """The answer itself."""
        return Answer(
            noisy.value,
            add(charge.epsilon, paid),
            self._scale.laws[chosen].name,
            noisy.error_bars,
            wished=_granted(self.wish, paid),
        ).to_json()

    def shown(
        self, recorded: str, index: int, charge: Charge, paid: Decimal, *, repeated: bool
    ) -> Answer:
        """The answer, as it was recorded."""
        return replace(Answer.from_json(recorded), repeated=repeated)


def scale_charge(request: Request, compiled: Compiled, scale: PublishedScale) -> Charge:
    """What the estimate of a query's scale costs."""
    return _charge_of(request, compiled, scale.describe(), scale.epsilon)


def _charge_of(request: Request, compiled: Compiled, mechanism: str, epsilon: Decimal) -> Charge:
    return Charge(
        analyst=request.analyst,
        dataset=request.dataset,
        query=compiled.canonical,
        mechanism=", ".join([mechanism, *compiled.residuals.query.large_units]),
        epsilon=epsilon,
    )
