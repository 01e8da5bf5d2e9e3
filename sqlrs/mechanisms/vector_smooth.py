"""One number, or groups that share no private row: polylaplace noise by the rows of each."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.smooth import Smooth
from sqlrs.mechanisms.summand_bounds import BoundsOf, SummandBound, TermBound, bounds_of
from sqlrs.mechanisms.vector_base import (
    GroupMeasurements,
    Summand,
    VectorDraw,
    around,
    error_in_words,
    true_numbers,
)
from sqlrs.noise import RandomBits
from sqlrs.records import dataclass


@dataclass(frozen=True)
class SingleNumber:
    """Noise for one number in proportion to the sum of its terms' smooth bounds.

    ``bounds`` are those of single rows, unless units own several; then ``protected`` says who is
    protected.
    """

    summands: tuple[Summand, ...]
    smooth: Smooth
    bounds: BoundsOf = bounds_of
    protected: str = ""

    @property
    def name(self) -> str:
        """The name of the noise."""
        return self.smooth.name

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """That of the noise, and that of the error bars."""
        return self.smooth.prices

    @property
    def coverage(self) -> Fraction | None:
        """That of the error bars."""
        return self.smooth.coverage

    def describe(self) -> str:
        """As for a single count."""
        return ", ".join(filter(None, [self.smooth.describe(), self.protected]))

    def prepare(self) -> PreparedNumber:
        """The values that the bounds need; too many are refused."""
        return PreparedNumber(self, self.bounds(self.summands))


@dataclass(frozen=True)
class PreparedNumber:
    """The mechanism with the bound of each term."""

    mechanism: SingleNumber
    bounds: tuple[TermBound, ...]

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> VectorDraw:
        """The true number, and T_E as far as the bounds depend on it."""
        smooth = self.mechanism.smooth
        numbers = true_numbers(self.mechanism.summands, measurements, domains, groups, 1)
        parts = [bound.measure(measurements, smooth.noise.weights) for bound in self.bounds]

        def draw(bits: RandomBits) -> tuple[Noisy, ...]:
            sensitivity = sum((part() for part in parts), Fraction(0))
            return tuple(noisy(smooth, number, sensitivity, bits) for number in numbers)

        return draw


@dataclass(frozen=True)
class ParallelVector:
    """Each group with the noise of its own private rows, at the price of one.

    ``smooth`` is what one group is released with: at half the price where a replaced row may leave
    one group and enter another; then it ``moves`` two.
    """

    summands: tuple[Summand, ...]
    size: int
    moves: int
    smooth: Smooth
    prices: tuple[Decimal, ...]

    @property
    def name(self) -> str:
        """The name of the noise."""
        return self.smooth.name

    @property
    def coverage(self) -> Fraction | None:
        """That of the error bars of one group."""
        return self.smooth.coverage

    def describe(self) -> str:
        """The noise of each group, as a multiple of that group's own sensitivity."""
        noise, bars = self.smooth.noise, self.smooth.bars
        said = error_in_words(
            f"polylaplace noise for each of {self.size} groups",
            noise.epsilon,
            noise.standard_error_multiple(),
            noise.median_error_multiple(),
            "which is that of the group's own rows: each private row is in one group",
        )
        return ", ".join([said, *([bars.describe()] if bars else [])])

    def prepare(self) -> PreparedParallel:
        """The values that the bounds need; too many are refused."""
        return PreparedParallel(self, bounds_of(self.summands))


@dataclass(frozen=True)
class PreparedParallel:
    """The mechanism with the bound of each term."""

    mechanism: ParallelVector
    bounds: tuple[SummandBound, ...]

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> VectorDraw:
        """The true numbers, and T_E of each group."""
        own, smooth = self.mechanism, self.mechanism.smooth
        weights = smooth.noise.weights
        # In this order: a statement for T_E may read the numbers on its way.
        parts = [
            bound.measure_by_group(measurements, weights, domains, groups) for bound in self.bounds
        ]
        numbers = true_numbers(own.summands, measurements, domains, groups, own.size)

        def draw(bits: RandomBits) -> tuple[Noisy, ...]:
            sensitivities = zip(*(part() for part in parts), strict=True)
            return tuple(
                noisy(smooth, number, sum(shares, Fraction(0)), bits)
                for number, shares in zip(numbers, sensitivities, strict=True)
            )

        return draw


def noisy(smooth: Smooth, number: int, sensitivity: Fraction, bits: RandomBits) -> Noisy:
    """One number with its noise, and its error bars where they are asked for."""
    value = number + smooth.noise.sample(sensitivity, bits)
    half = 0 if smooth.bars is None else smooth.bars.half_width(sensitivity, bits)
    return around(value, half, smooth.coverage)
