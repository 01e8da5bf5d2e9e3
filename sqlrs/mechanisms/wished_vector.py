"""The measure of a statement with a wished error: what is told first, and the noise it allows.

Where each unit or row is cut, a threshold is told; elsewhere the scale. Each makes the width of the
noise public at every price. Privacy: docs/proofs/wished_error.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial

from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.cut_at_threshold import CutAtThreshold
from sqlrs.mechanisms.summand_bounds import BoundsOf, TermBound, bounds_of
from sqlrs.mechanisms.unit_rows import unit_bounds
from sqlrs.mechanisms.vector_base import (
    GroupMeasurements,
    Summand,
    VectorMechanism,
    around,
    true_numbers,
)
from sqlrs.mechanisms.vector_general import GeneralVector
from sqlrs.mechanisms.vector_smooth import ParallelVector, SingleNumber
from sqlrs.mechanisms.wished import least_where
from sqlrs.noise import Laplace, RandomBits
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.noise.lomax import Lomax
from sqlrs.noise.polylaplace import PolyLaplace
from sqlrs.noise.published_scale import SHAPES, PublishedScale, published_scale
from sqlrs.records import dataclass

_SHOWN = (Decimal("0.01"), Decimal("0.1"), Decimal(1))
# Noise of a large sensitivity S strays by more than this many S / epsilon once in 20 times.
_TWENTIETH = math.log(20)


@dataclass(frozen=True)
class Priced:
    """A noise by its price; half the width of its interval is public once something was told."""

    noise: Laplace | PolyLaplace | Lomax
    half_width: int

    @property
    def epsilon(self) -> Decimal:
        """What it costs."""
        return self.noise.epsilon


@dataclass(frozen=True, repr=False)
class LookedVector:
    """Measured values, which are private. Each of the two releases must be charged before it."""

    publish: Callable[[RandomBits], int]
    noisy: Callable[[int, Priced, RandomBits], tuple[Noisy, ...]]

    def __repr__(self) -> str:
        return "LookedVector(private)"


class WishedVector(ABC):
    """How a measure is released in two steps. Nothing here depends on the data."""

    @property
    @abstractmethod
    def look(self) -> Decimal:
        """What is paid to be told the threshold or the scale."""

    @abstractmethod
    def describe_look(self) -> str:
        """One line for the ledger about the first step."""

    @abstractmethod
    def describe(self, index: int, priced: Priced) -> str:
        """One line for the ledger about the second step, after ``index`` was told."""

    @abstractmethod
    def least(self, index: int, error: Fraction) -> Priced | None:
        """The cheapest noise whose interval has at most this half-width, None if none has."""

    @abstractmethod
    def best(self, index: int) -> Priced:
        """The noise for all that is left of the maximum."""

    @abstractmethod
    def widths(self, index: int | None) -> tuple[tuple[Decimal, float], ...]:
        """Prices and half-widths: after ``index`` was told, or as multiples of what is not."""

    @abstractmethod
    def prepare(self) -> WishedVector:
        """Ready to measure; too much work is refused here, before anything is charged."""

    @abstractmethod
    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> LookedVector:
        """Take all measurements; the snapshot may end before anything is drawn."""


@dataclass(frozen=True)
class WishedCut(WishedVector):
    """A threshold is chosen as at the maximum; then the noise in its size has a public width."""

    cut: CutAtThreshold

    @property
    def look(self) -> Decimal:
        """The price of the choice."""
        return self.cut.choice_epsilon

    def describe_look(self) -> str:
        """The grid."""
        return f"threshold: {self.cut.said_of_choice()}"

    def describe(self, index: int, priced: Priced) -> str:
        """The threshold, which is public by now, and the noise."""
        threshold = self.cut.thresholds[index] * self.cut.worth
        return (
            f"clipped: cut at the threshold {threshold}, which was chosen before, and laplace "
            f"noise, epsilon {priced.epsilon}"
        )

    def least(self, index: int, error: Fraction) -> Priced | None:
        """The noise at the least price of three digits."""
        found = least_where(
            lambda epsilon: self._priced(index, Laplace(epsilon)).half_width <= error,
            self.cut.noise.epsilon,
        )
        return None if found is None else self._priced(index, Laplace(found))

    def best(self, index: int) -> Priced:
        """What a release at the maximum would use."""
        return self._priced(index, self.cut.noise)

    def widths(self, index: int | None) -> tuple[tuple[Decimal, float], ...]:
        """Of a few prices; multiples of the threshold where it is not known."""
        most = self.cut.noise.epsilon
        prices = sorted({most, *(one for one in _SHOWN if one < most)})
        if index is None:
            multiple = float(self.cut.moved) * _TWENTIETH
            return tuple((one, multiple / float(one)) for one in prices)
        halves = (self._priced(index, Laplace(one)).half_width for one in prices)
        return tuple(
            (one, float(half * self.cut.worth)) for one, half in zip(prices, halves, strict=True)
        )

    def _priced(self, index: int, noise: Laplace) -> Priced:
        return Priced(noise, self.cut.half_width(index, noise, 1 - DEFAULT_COVERAGE))

    def prepare(self) -> WishedCut:
        """With what it needs to measure."""
        return replace(self, cut=self.cut.prepare())

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> LookedVector:
        """What the units or rows contribute."""
        draw = self.cut.measure(measurements, domains, groups)

        def noisy(index: int, priced: Priced, bits: RandomBits) -> tuple[Noisy, ...]:
            if not isinstance(priced.noise, Laplace):
                raise TypeError("numbers that are cut get laplace noise")
            return draw.noisy(index, priced.noise, bits)

        return LookedVector(draw.choose, noisy)


@dataclass(frozen=True)
class WishedScale(WishedVector):
    """An estimate of the scale is told, and then noise of one of the shapes is drawn.

    ``moves`` times the sum of the terms' bounds is how far all numbers move in all. ``of_units``:
    those of units of few rows, not of single rows.
    """

    summands: tuple[Summand, ...]
    size: int
    moves: int
    maximum: Decimal
    worth: Fraction
    bars: bool
    of_units: bool = False
    bounds: tuple[TermBound, ...] = ()

    @cached_property
    def _scale(self) -> PublishedScale:
        return published_scale(self.maximum, self.size)

    @property
    def _bounds_of(self) -> BoundsOf:
        return partial(unit_bounds, self._scale.weights) if self.of_units else bounds_of

    @property
    def look(self) -> Decimal:
        """The price of the estimate."""
        return self._scale.epsilon

    def describe_look(self) -> str:
        """The family of noises."""
        return self._scale.describe()

    def describe(self, index: int, priced: Priced) -> str:
        """The noise, and the estimate, which is public by now."""
        return f"{priced.noise.describe()}, interval by the published scale {index}"

    def least(self, index: int, error: Fraction) -> Priced | None:
        """One of the shapes."""
        shape = self._scale.least_shape(index, error)
        return None if shape is None else self._priced(index, shape)

    def best(self, index: int) -> Priced:
        """The largest shape."""
        return self._priced(index, SHAPES[-1])

    def widths(self, index: int | None) -> tuple[tuple[Decimal, float], ...]:
        """Of all shapes; multiples of the sensitivity where it is not known."""
        scale = self._scale
        if index is None:
            one = self.moves * scale.scale(Fraction(1))
            return tuple((scale.laws[a].epsilon, float(scale.multiple_of(a) * one)) for a in SHAPES)
        return tuple(
            (scale.laws[a].epsilon, float(scale.half_width(index, a) * self.worth)) for a in SHAPES
        )

    def _priced(self, index: int, shape: int) -> Priced:
        return Priced(self._scale.laws[shape], self._scale.half_width(index, shape))

    def prepare(self) -> WishedScale:
        """With the values that the bounds need; too many are refused."""
        return replace(self, bounds=self._bounds_of(self.summands))

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> LookedVector:
        """The true numbers, and T_E as far as the bounds depend on it."""
        numbers = true_numbers(self.summands, measurements, domains, groups, self.size)
        parts = [bound.measure(measurements, self._scale.weights) for bound in self.bounds]

        def moved() -> Fraction:
            return self.moves * sum((part() for part in parts), Fraction(0))

        def publish(bits: RandomBits) -> int:
            return self._scale.publish(moved(), bits)

        def noisy(index: int, priced: Priced, bits: RandomBits) -> tuple[Noisy, ...]:
            noise, sensitivity = priced.noise, moved()
            drawn = noise.sample(sensitivity, bits)
            noises = drawn if isinstance(drawn, tuple) else (drawn,)
            coverage = self._scale.coverage if self.bars else None
            return tuple(
                around(number + noise, priced.half_width, coverage)
                for number, noise in zip(numbers, noises, strict=True)
            )

        return LookedVector(publish, noisy)


def wished_vector(
    mechanism: VectorMechanism, maximum: Decimal, worth: Fraction, *, bars: bool
) -> WishedVector | None:
    """The two steps for a measure that would have this mechanism, None where it has none.

    Groups that share no private row have a scale each, and as many estimates would be needed: they
    get the noise of groups in general, which has one.
    """
    if isinstance(mechanism, CutAtThreshold):
        return WishedCut(mechanism)
    if isinstance(mechanism, SingleNumber):
        size, moves, protected = 1, 1, mechanism.protected
    elif isinstance(mechanism, GeneralVector):
        size, moves, protected = mechanism.noise.size, mechanism.moves, mechanism.protected
    elif isinstance(mechanism, ParallelVector):
        size, moves, protected = mechanism.size, mechanism.moves, ""
    else:
        return None
    return WishedScale(
        mechanism.summands, size, moves, maximum, worth, bars, of_units=bool(protected)
    )
