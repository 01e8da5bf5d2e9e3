"""Private error bars: an interval around an answer, at a privacy cost of its own.

The scale is placed on a public geometric grid, the index gets two-sided geometric noise, and the
interval is wide enough for both noises together. Proofs: docs/proofs/error_bars.md.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import UsageError
from sqlrs.noise.geometric import two_sided_geometric
from sqlrs.noise.law import ScaledLaw
from sqlrs.noise.randomness import RandomBits
from sqlrs.noise.width import GRID_BITS, width_multiple
from sqlrs.sensitivity.exponential import round_up
from sqlrs.sensitivity.sequence import LazySequence

DEFAULT_COVERAGE = Fraction(19, 20)
MIN_COVERAGE = Fraction(1, 2)
MAX_COVERAGE = Fraction(9999, 10000)
_PRECISION = 128


class ErrorBars:
    """Intervals that hold the true count with probability `coverage`, for `epsilon` more."""

    def __init__(
        self, epsilon2: Decimal, mechanism: ScaledLaw, coverage: Fraction = DEFAULT_COVERAGE
    ) -> None:
        if not MIN_COVERAGE <= coverage <= MAX_COVERAGE:
            raise UsageError(
                "the coverage is out of range",
                hint=f"give a number from {float(MIN_COVERAGE)} to {float(MAX_COVERAGE)}",
            )
        self.epsilon = parse_epsilon(epsilon2)
        self.coverage = coverage
        self._mechanism = mechanism
        self._grid = Grid(1 / mechanism.weights.decay)
        self.multiple = width_multiple(
            mechanism, self._grid.step, Fraction(self.epsilon), 1 - coverage
        )

    def interval(self, answer: int, sensitivity: Fraction, bits: RandomBits) -> tuple[int, int]:
        """The interval around a released answer. It reveals the sensitivity, at cost `epsilon`."""
        half = self.half_width(sensitivity, bits)
        return answer - half, answer + half

    def half_width(self, sensitivity: Fraction, bits: RandomBits) -> int:
        """Half the width of the interval of every number whose noise has this sensitivity.

        One call costs `epsilon`, however many numbers of one law it serves.
        """
        target = self._mechanism.scale(sensitivity) * self.multiple
        index = self._grid.index(target) + two_sided_geometric(Fraction(self.epsilon), bits)
        return math.ceil(self._grid.value(max(index, 0)))

    def describe(self) -> str:
        """One line for people, made of public parameters alone."""
        return (
            f"error bars of coverage {float(self.coverage):.4g}, epsilon {self.epsilon}: "
            f"{self.widening:.3g} times as wide as if the scale were known"
        )

    @cached_property
    def widening(self) -> float:
        """What the privacy of the scale costs: the width over that with a known scale."""
        miss = 1 - self.coverage
        allowed = (miss.numerator << _PRECISION) // miss.denominator
        low, high = 0, 1 << _PRECISION
        while self._mechanism.tail_ceiling(high, _PRECISION) > allowed:
            low, high = high, 2 * high
        while high - low > 1 << _PRECISION // 2:
            middle = (low + high) // 2
            if self._mechanism.tail_ceiling(middle, _PRECISION) > allowed:
                low = middle
            else:
                high = middle
        return float(self.multiple / Fraction(high, 1 << _PRECISION))

    def __repr__(self) -> str:
        return f"ErrorBars(epsilon={self.epsilon}, {self._mechanism!r}, coverage={self.coverage})"


class Grid:
    """Public numbers h_0 = 1 < h_1 < ..., each at least `step` times the one before.

    h_i is the product of rho_l over the bits l of i, with rho_0 = step and rho_(l+1) >= rho_l**2
    rounded up: any h_i, and the place of any number, is found in the time of its logarithm.
    """

    def __init__(self, step: Fraction) -> None:
        self.step = round_up(step, GRID_BITS)
        self._levels = LazySequence(self.step, lambda level: round_up(level**2, GRID_BITS))

    def index(self, target: Fraction) -> int:
        """The least i with h_i >= target."""
        if target <= 1:
            return 0
        top = 0
        while self._levels[top] < target:
            top += 1
        below, value = 0, Fraction(1)
        for level in reversed(range(top)):
            higher = value * self._levels[level]
            if higher < target:
                below, value = below + (1 << level), higher
        return below + 1

    def value(self, index: int) -> Fraction:
        """h_index, for an index of at least 0."""
        used = (level for level in range(index.bit_length()) if index >> level & 1)
        return math.prod((self._levels[level] for level in used), start=Fraction(1))
