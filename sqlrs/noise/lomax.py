"""Noise for a vector of counts with one smooth sensitivity: a multivariate Lomax law with signs.

The density is proportional to (1 + |x| / scale)**-(d + a) with the l1 norm |x|, in d dimensions.
Privacy and the sampler: docs/proofs/lomax.md.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import UsageError
from sqlrs.noise.directed import OPPOSITE, beyond, directed
from sqlrs.noise.law import require_exact
from sqlrs.noise.polylaplace import MAX_SHAPE
from sqlrs.noise.randomness import RandomBits
from sqlrs.sensitivity.exponential import exp_lower, power_up
from sqlrs.sensitivity.weights import Weights

DEFAULT_SHARE = Fraction(1, 5)
"""The part of epsilon that pays for a changing scale (eta); the rest pays for the shift."""

RATIO_BITS = 64
_FIRST_BITS = 128
_FIRST_DIGITS = 36


class Lomax:
    """Noise for `size` counts that move by at most S in all, S by at most `ratio` a neighbour."""

    name = "lomax"

    def __init__(self, epsilon: Decimal, size: int, share: Fraction = DEFAULT_SHARE) -> None:
        if size < 1:
            raise ValueError("a vector has at least one coordinate")
        if not 0 < share < 1:
            raise UsageError("the share of epsilon for the scale lies between 0 and 1")
        self.epsilon = parse_epsilon(epsilon)
        self.size = size
        self.share = share
        whole = Fraction(self.epsilon)
        # R**a <= e**epsilon, and R**size <= e**(share * epsilon).
        self.shape = math.floor(size / share)
        self.ratio = _rounded_down(exp_lower(share * whole / size))
        # With p = size + a: (1 + pull / R)**p <= e**((1 - share) * epsilon), which is condition (i)
        # of the proof, and (1 + pull)**p <= e**epsilon, which is (ii).
        power = size + self.shape
        changing = self.ratio * (exp_lower((1 - share) * whole / power) - 1)
        self.pull = _rounded_down(min(changing, exp_lower(whole / power) - 1))
        self.weights = Weights.from_ratio(self.ratio)

    def scale(self, sensitivity: Fraction) -> Fraction:
        """The scale lambda = S / alpha of the noise. Private: it follows the data."""
        return require_exact(sensitivity) / self.pull

    def sample(self, sensitivity: Fraction, bits: RandomBits) -> tuple[int, ...]:
        """The noise to add to the true counts; all 0 where the sensitivity is 0."""
        scale = self.scale(sensitivity)
        if scale == 0:
            return (0,) * self.size
        sizes = _Sizes(scale, self.shape, self.size, bits).rounded()
        return tuple(-size if size and bits.bits(1) else size for size in sizes)

    def tail_ceiling(self, distance: int, precision: int) -> int:
        """An upper bound of the chance of noise beyond a width W >= distance / 2**precision scales.

        In one coordinate; a whole number of units of 2**-precision. P(|X| > y) = (1 + y)**-a.
        """
        one = 1 << precision
        return power_up(-(-one * one // (one + distance)), self.shape, precision)

    def standard_error_multiple(self) -> float:
        """The standard error of one coordinate as a multiple of the sensitivity."""
        second_moment = 2 / ((self.shape - 1) * (self.shape - 2)) if self.shape > 2 else math.inf
        return math.sqrt(second_moment) / float(self.pull)

    def median_error_multiple(self) -> float:
        """The median error of one coordinate as a multiple of the sensitivity."""
        return float(math.expm1(math.log(2) / self.shape)) / float(self.pull)

    def describe(self) -> str:
        """One line for people, made of public parameters alone."""
        return (
            f"lomax noise for {self.size} counts at once, epsilon {self.epsilon}: standard error "
            f"{self.standard_error_multiple():.3g} and median error "
            f"{self.median_error_multiple():.3g} times the sensitivity, in each"
        )

    def __repr__(self) -> str:
        return f"Lomax(epsilon={self.epsilon}, size={self.size}, share={self.share})"


def usual_share(epsilon: Decimal, size: int, epsilon2: Decimal | None = None) -> Fraction:
    """The share of epsilon for the scale, from public numbers; with error bars at their price.

    The published index of the scale wanders by about 1 / epsilon2 steps of share * epsilon / size
    each: where that is more than half a power of e, a smaller share makes the interval narrower.
    """
    if epsilon2 is None:
        return DEFAULT_SHARE
    narrow = size * Fraction(epsilon2) / (2 * Fraction(epsilon))
    return min(DEFAULT_SHARE, max(narrow, Fraction(size, MAX_SHAPE)))


def _rounded_down(value: Fraction) -> Fraction:
    return Fraction((value.numerator << RATIO_BITS) // value.denominator, 1 << RATIO_BITS)


class _Sizes:
    """The sizes round(scale * |X_i|) of one draw, each decided by as many bits as it takes.

    With M_0 = 1 and M_i = M_(i-1) * U_i**(-1 / (a + i - 1)) for independent uniform U_i, the
    |X_i| / scale = M_i - M_(i-1) have the law. Every quantity is enclosed between two decimals;
    where the two ends round to different integers, all are enclosed anew, more closely.
    """

    def __init__(self, scale: Fraction, shape: int, size: int, source: RandomBits) -> None:
        self._scale = scale
        self._shape = shape
        self._source = source
        self._length = _FIRST_BITS
        self._digits = _FIRST_DIGITS + _digits_of(scale)
        self._uniforms = [source.bits(self._length) for _ in range(size)]

    def rounded(self) -> list[int]:
        """The sizes, once both ends of every enclosure agree."""
        while (sizes := self._decided()) is None:
            self._uniforms = [
                u << self._length | self._source.bits(self._length) for u in self._uniforms
            ]
            self._length *= 2
            self._digits *= 2
        return sizes

    def _decided(self) -> list[int] | None:
        down = directed(self._digits, ROUND_FLOOR)
        up = directed(self._digits, ROUND_CEILING)
        scale_low = down.divide(Decimal(self._scale.numerator), Decimal(self._scale.denominator))
        scale_high = up.divide(Decimal(self._scale.numerator), Decimal(self._scale.denominator))
        log_low = log_high = Decimal(0)
        before_low = before_high = Decimal(1)
        sizes = []
        for place, uniform in enumerate(self._uniforms):
            if uniform == 0:
                return None
            power = Decimal(self._shape + place)
            # -ln U of both ends of the interval that holds U.
            least, most = self._minus_ln(uniform + 1, down), self._minus_ln(uniform, up)
            log_low = down.add(log_low, down.divide(least, power))
            log_high = up.add(log_high, up.divide(most, power))
            low, high = _exp_below(log_low, down), _exp_above(log_high, up)
            if not (low.is_finite() and high.is_finite()):
                return None
            near = max(Decimal(0), down.multiply(scale_low, down.subtract(low, before_high)))
            far = up.multiply(scale_high, up.subtract(high, before_low))
            size = _nearest(near)
            if size != _nearest(far):
                return None
            sizes.append(size)
            before_low, before_high = low, high
        return sizes

    def _minus_ln(self, uniform: int, context: Context) -> Decimal:
        """A bound of -ln(uniform / 2**length), on the side that the context rounds to."""
        # -ln u = length * ln 2 - ln(uniform); decimal rounds its ln correctly, to the nearest.
        opposite = directed(self._digits, OPPOSITE[context.rounding])
        two = beyond(_ln_two(self._digits), context)
        log = beyond(Decimal(uniform).ln(opposite), opposite)
        return max(Decimal(0), context.subtract(context.multiply(two, Decimal(self._length)), log))


@lru_cache(maxsize=64)
def _ln_two(digits: int) -> Decimal:
    return Decimal(2).ln(directed(digits, ROUND_FLOOR))


def _exp_below(exponent: Decimal, context: Context) -> Decimal:
    return max(Decimal(1), context.next_minus(exponent.exp(context)))


def _exp_above(exponent: Decimal, context: Context) -> Decimal:
    return context.next_plus(exponent.exp(context))


def _nearest(value: Decimal) -> int:
    """The nearest integer to a number that is not negative; ties, without probability, go up."""
    whole = math.floor(value)
    # Decimals of any length are compared exactly, whatever the context.
    return whole + (value >= Decimal(f"{whole}.5"))


def _digits_of(scale: Fraction) -> int:
    return len(str(max(1, scale.numerator // scale.denominator)))
