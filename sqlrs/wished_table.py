"""Statements with a wished error: the price where the width is public, else both steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from sqlrs.answer import Wished
from sqlrs.before_charge import Ready
from sqlrs.charges import described_charge
from sqlrs.engines import released_json
from sqlrs.engines.base import hold_still
from sqlrs.epsilon import parse_error
from sqlrs.ledger import Charge
from sqlrs.ledger.base import add
from sqlrs.measures import Asked
from sqlrs.measuring.tried_constants import check_constants, check_constants_by_unit
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.cut_at_threshold import CutAtThreshold
from sqlrs.mechanisms.vector_base import PreparedVector, VectorDraw, VectorMechanism
from sqlrs.mechanisms.vector_constant import ConstantVector
from sqlrs.mechanisms.wished import least_epsilon, least_where
from sqlrs.mechanisms.wished_vector import (
    LookedVector,
    Priced,
    WishedCut,
    WishedVector,
    wished_vector,
)
from sqlrs.noise import Laplace, RandomBits
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.release import table_of
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.settings import Request, Wish
from sqlrs.table_answer import TableAnswer
from sqlrs.wished_steps import TwoSteps, WishDesk

_MISS = 1 - DEFAULT_COVERAGE
# The record of a count that is asked as such has another form.
_AS_STATEMENT = ", asked as a statement"
_Numbers = dict[Asked, tuple[Noisy, ...]]


@dataclass(frozen=True)
class PublicWidth:
    """Laplace noise whose width follows from public facts: of each price the half-width.

    ``moved``: how far one change moves the numbers in all. ``unit``: what 1 of them is worth.
    """

    moved: Fraction
    unit: Fraction
    cut: CutAtThreshold | None = None

    def half_width(self, epsilon: Decimal) -> Fraction:
        """Half the width of the 95 % interval, in the answer's own numbers."""
        noise = Laplace(epsilon)
        if self.cut is not None:
            return self.cut.half_width(0, noise, _MISS) * self.unit
        return noise.half_width(self.moved, _MISS) * self.unit

    def least(self, wish: Wish) -> Decimal | None:
        """The least price that grants a wish, None where the maximum is not enough."""
        if self.cut is not None:
            return least_where(lambda one: self.half_width(one) <= wish.half_width, wish.maximum)
        return least_epsilon(self.moved, wish.half_width / self.unit, _MISS, wish.maximum)


def way_of(
    request: Request, wish: Wish, desk: WishDesk, ready: Ready
) -> PublicWidth | WishedVector | None:
    """How the width of the one noisy measure becomes public; None where nothing is noisy.

    Reads public rows alone; several aggregates are refused.
    """
    noisy = [(asked, one) for asked, one in ready.mechanisms.items() if sum(one.prices)]
    if not noisy:
        return None
    if len(noisy) > 1:
        raise refusal(
            "wish_unsupported",
            "an error cannot be wished for several aggregates at once; an average is two",
            hint="ask for one count or one sum, or give epsilon, with error bars",
        )
    ((asked, mechanism),) = noisy
    unit = asked[1].unit
    if isinstance(mechanism, CutAtThreshold) and len(mechanism.thresholds) == 1:
        return PublicWidth(mechanism.moved * mechanism.thresholds[0], unit, mechanism)
    if isinstance(mechanism, ConstantVector):
        bounds = mechanism.prepare().fixed
        if not any(reads_private(one.measured, one.wanted) for one in bounds):
            measurements = desk.public_measurements(ready.snapshot)
            moved = mechanism.moves * sum(one.measure(measurements) for one in bounds)
            return PublicWidth(Fraction(moved), unit)
    found = wished_vector(mechanism, wish.maximum, unit, bars=request.error_bars is not None)
    if found is None:
        raise refusal(
            "wish_unsupported",
            "the noise of this statement has a width that private rows decide",
            hint="give epsilon, with error bars",
        )
    return found


@dataclass(frozen=True, repr=False)
class _Measured:
    """Measured values of all measures, which are private."""

    looked: LookedVector
    others: Mapping[Asked, VectorDraw]


@dataclass(frozen=True)
class TableSteps(TwoSteps[_Measured, Priced, _Numbers, tuple[TableAnswer, Wished]]):
    """A statement of one noisy measure: its threshold or scale is told first.

    ``ready`` and its snapshot are open; ``opened`` ends them.
    """

    request: Request
    wish: Wish
    desk: WishDesk
    ready: Ready
    vector: WishedVector
    opened: ExitStack

    @property
    def told(self) -> str:  # type: ignore[override]
        """In words, what is told first."""
        return "the choice of the threshold" if self._cuts else "the estimate of the scale"

    @property
    def _cuts(self) -> bool:
        return isinstance(self.vector, WishedCut)

    @property
    def _asked(self) -> tuple[Asked, VectorMechanism]:
        ((asked, one),) = [
            (asked, one) for asked, one in self.ready.mechanisms.items() if sum(one.prices)
        ]
        return asked, one

    @property
    def _unit(self) -> Fraction:
        return self._asked[0][1].unit

    @property
    def look(self) -> Charge:
        """The charge of the first step."""
        return look_charge(self.request, self.vector, self.ready)

    def chosen(self, index: int) -> Priced | None:
        """The cheapest noise that will do."""
        return self.vector.least(index, self.wish.half_width / self._unit)

    def least_error(self, index: int) -> str:
        """For all of the maximum."""
        return f"{float(self.vector.best(index).half_width * self._unit):g}"

    def charge(self, index: int, chosen: Priced) -> Charge:
        """The charge of the second step, and of all numbers beside it that are public."""
        said = f"{self.vector.describe(index, chosen)}{_AS_STATEMENT}"
        if self.request.error_bars is not None:
            said = f"{said}, with the ends of its interval"
        return described_charge(self.request, [said], self.ready.compiled, chosen.epsilon)

    @contextmanager
    def reading(self) -> Iterator[Callable[[], _Measured]]:
        """What is refused of a statement, its constants among it; then all measures."""
        ready, dialect, sql = self.ready, self.desk.engine.dialect, self.request.sql
        noisy = self._asked[0]
        with self.opened:
            vector = self.vector.prepare()
            others: dict[Asked, PreparedVector] = {
                asked: one.prepare() for asked, one in ready.mechanisms.items() if asked != noisy
            }
            compiled, snapshot = ready.compiled, ready.snapshot
            check_constants(compiled.queries, snapshot, dialect, sql, compiled.kept)
            check_constants_by_unit(compiled.by_unit, snapshot, dialect, sql)
            hold_still(snapshot, compiled.tables(self.desk.catalog))
            measurements = replace(
                self.desk.measurements(snapshot),
                kept=compiled.kept,
                domains=ready.groups.domains(compiled.statement.aggregations),
            )

            def measure() -> _Measured:
                of = ready.groups.of
                return _Measured(
                    vector.measure(measurements, noisy[0], of[noisy]),
                    {
                        asked: one.measure(measurements, asked[0], of[asked])
                        for asked, one in others.items()
                    },
                )

            yield measure

    def publish(self, looked: _Measured, bits: RandomBits) -> int:
        """The threshold or the scale."""
        return looked.looked.publish(bits)

    def noisy(self, looked: _Measured, index: int, chosen: Priced, bits: RandomBits) -> _Numbers:
        """All numbers."""
        numbers = {asked: draw(bits) for asked, draw in looked.others.items()}
        return {**numbers, self._asked[0]: looked.looked.noisy(index, chosen, bits)}

    def recorded(self, noisy: _Numbers, chosen: Priced, charge: Charge, paid: Decimal) -> str:
        """The released relations."""
        ready = self.ready
        relations = [
            ready.relation(one, ready.groups.rows[one.name], [noisy[asked] for asked in one.asked])
            for one in ready.compiled.statement.aggregations
        ]
        return released_json.to_json(relations)

    def shown(
        self, recorded: str, index: int, charge: Charge, paid: Decimal, *, repeated: bool
    ) -> tuple[TableAnswer, Wished]:
        """What stands above the released relations, and what the wish has cost."""
        relations = released_json.from_json(recorded)
        table = table_of(self.ready.above, relations, charge, repeated=repeated)
        granted = Wished(parse_error(self.wish.error), self.wish.maximum, paid)
        return replace(table, epsilon=add(charge.epsilon, paid)), granted


def reads_private(residuals: Residuals, wanted: Iterable[Members]) -> bool:
    """Whether the values of these sets depend on private rows."""
    private = residuals.query.private
    return any(part.members & private for part in residuals.undecided(tuple(wanted)))


def look_charge(request: Request, vector: WishedVector, ready: Ready) -> Charge:
    """What the first step of a statement costs."""
    said = f"{vector.describe_look()}{_AS_STATEMENT}"
    return described_charge(request, [said], ready.compiled, vector.look)
