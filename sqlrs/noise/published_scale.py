"""One private look at a scale that serves noises of many prices: accuracy can be asked for.

Polylaplace noises whose epsilon is a fixed multiple of their shape share one scale; the shape alone
says how far they stray in it. Lomax noises of one vector whose share is the inverse of that
multiple share one sensitivity. So one published estimate tells the width of the interval at every
price before any of them is paid. Proofs: docs/proofs/wished_error.md.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

from sqlrs.epsilon import MIN_EPSILON, parse_epsilon
from sqlrs.errors import UsageError
from sqlrs.noise.error_bars import DEFAULT_COVERAGE, Grid
from sqlrs.noise.geometric import two_sided_geometric
from sqlrs.noise.lomax import Lomax
from sqlrs.noise.polylaplace import PolyLaplace
from sqlrs.noise.randomness import RandomBits
from sqlrs.noise.width import width_multiple
from sqlrs.sensitivity.weights import Weights

SHAPES = (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25)
"""The public grid: the price of an answer is its shape times one step."""
SCALE_SHARE = Decimal("0.08")
"""The part of the maximum that the estimate of the scale costs, or a little more."""

_PRECISION = 128
# All shapes are tried at every step of the grid: fewer, larger steps keep that quick.
_BLOCK = 32
_STEP = Context(prec=12, rounding=ROUND_FLOOR)
_EXACT = Context(prec=60)
# The number of distances that a sensitivity looks at grows as the weights fall more slowly.
_LEAST_STEP = Decimal("0.0000101")


class PublishedScale:
    """The estimate of the scale, and the interval of the noise of each shape, for one maximum.

    ``size``: of how many numbers at once; of more than one a Lomax vector, where ``shape`` counts
    the shape for each number. ``scale`` is that of the first shape.
    """

    def __init__(
        self, maximum: Decimal, coverage: Fraction = DEFAULT_COVERAGE, size: int = 1
    ) -> None:
        self.maximum = parse_epsilon(maximum)
        self.coverage = coverage
        self.size = size
        part = _EXACT.multiply(self.maximum, 1 - SCALE_SHARE)
        self.step = _STEP.divide(part, Decimal(SHAPES[-1]))
        least_step = _LEAST_STEP if size == 1 else 2 * size * _LEAST_STEP
        if self.step < least_step:
            least = least_step * SHAPES[-1] / (1 - SCALE_SHARE) + MIN_EPSILON
            raise UsageError(
                "the maximal epsilon is too small for an error to be wished",
                hint=f"give at least {least:.6f}" + (", or ask for fewer groups" * (size > 1)),
            )
        spent = _EXACT.multiply(self.step, Decimal(SHAPES[-1]))
        self.epsilon = parse_epsilon(_EXACT.subtract(self.maximum, spent))
        self.laws = {a: self._law(a) for a in SHAPES}
        if len({law.ratio for law in self.laws.values()}) != 1:
            raise ValueError("noises of different scales have no estimate in common")
        first = self.laws[SHAPES[0]]
        self.weights: Weights = first.weights
        self.scale = first.scale
        self._grid = Grid(1 / self.weights.decay)

    def _law(self, shape: int) -> PolyLaplace | Lomax:
        price = _EXACT.multiply(self.step, Decimal(shape))
        if self.size == 1:
            return PolyLaplace(price, shape)
        return Lomax(price, self.size, Fraction(1, shape))

    def of_number(self, shape: int) -> PolyLaplace:
        """The noise of one number."""
        law = self.laws[shape]
        if not isinstance(law, PolyLaplace):
            raise TypeError("this is the noise of several numbers at once")
        return law

    @cached_property
    def _reach(self) -> dict[int, Fraction]:
        """How far the noise of each shape strays, as a part of how far that of the first does."""
        one = Fraction(1)
        quantiles = {
            a: law_quantile(law, 1 - self.coverage) * law.scale(one) for a, law in self.laws.items()
        }
        return {a: found / quantiles[SHAPES[0]] for a, found in quantiles.items()}

    @cached_property
    def _distances(self) -> tuple[tuple[PolyLaplace | Lomax, Fraction], ...]:
        """The distance of each noise in its own scale, as a part of one in the first scale."""
        first = self.scale(Fraction(1))
        return tuple(
            (law, self._reach[a] * first / law.scale(Fraction(1))) for a, law in self.laws.items()
        )

    @cached_property
    def multiple(self) -> Fraction:
        """The multiple of the scale that is published; wide enough whichever shape is chosen."""
        miss = 1 - self.coverage
        return width_multiple(self, self._grid.step, Fraction(self.epsilon), miss, _BLOCK)

    def tail_ceiling(self, distance: int, precision: int) -> int:
        """An upper bound of the chance to stray, for the worst of all shapes.

        Each strays beyond its own part of ``distance / 2**precision`` scales. The shape is chosen
        by the estimate, so the chance must hold for any choice.
        """
        return max(
            law.tail_ceiling(distance * part.numerator // part.denominator, precision)
            for law, part in self._distances
        )

    def publish(self, sensitivity: Fraction, bits: RandomBits) -> int:
        """The estimate, an index of the public grid. It reveals the scale, at cost `epsilon`."""
        index = self._grid.index(self.scale(sensitivity) * self.multiple)
        return max(0, index + two_sided_geometric(Fraction(self.epsilon), bits))

    def half_width(self, index: int, shape: int) -> int:
        """Half the width of the interval of noise of this shape, by the published estimate."""
        return math.ceil(self._grid.value(index) * self._reach[shape])

    def multiple_of(self, shape: int) -> Fraction:
        """Half the width of the interval in scales, but for the noise on the estimate."""
        return self.multiple * self._reach[shape]

    def least_shape(self, index: int, error: Fraction) -> int | None:
        """The cheapest noise whose interval has at most this half-width, None if none has."""
        return next((a for a in SHAPES if self.half_width(index, a) <= error), None)

    def describe(self) -> str:
        """One line for people and for the ledger, made of public parameters alone."""
        if self.size > 1:
            return (
                f"scale of lomax noise for {self.size} groups at once at {len(SHAPES)} prices from "
                f"epsilon {self.laws[SHAPES[0]].epsilon:f} to {self.laws[SHAPES[-1]].epsilon:f}, "
                f"coverage {float(self.coverage):.4g}, epsilon {self.epsilon:f}"
            )
        return (
            f"scale of polylaplace noise of shapes {SHAPES[0]} to {SHAPES[-1]} at epsilon "
            f"{self.step:f} times the shape, coverage {float(self.coverage):.4g}, epsilon "
            f"{self.epsilon:f}"
        )

    def __repr__(self) -> str:
        return f"PublishedScale(maximum={self.maximum}, coverage={self.coverage})"


@lru_cache(maxsize=64)
def published_scale(maximum: Decimal, size: int = 1) -> PublishedScale:
    """The estimate for a maximum: made once, as its multiple takes a moment to find."""
    return PublishedScale(maximum, size=size)


def law_quantile(law: PolyLaplace | Lomax, miss: Fraction) -> Fraction:
    """A multiple of the scale beyond which the noise strays with a chance of at most ``miss``."""
    allowed = _floor(miss)
    low, high = 0, 1 << _PRECISION
    while law.tail_ceiling(high, _PRECISION) > allowed:
        low, high = high, 2 * high
    while high - low > 1 << _PRECISION - 20:
        middle = (low + high) // 2
        if law.tail_ceiling(middle, _PRECISION) > allowed:
            low = middle
        else:
            high = middle
    return Fraction(high, 1 << _PRECISION)


def _floor(value: Fraction) -> int:
    return (value.numerator << _PRECISION) // value.denominator
