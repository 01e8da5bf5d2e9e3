"""The polylaplace mechanism: the least noise that a smooth sensitivity allows, sampled exactly.

The law is the PolyPlace distribution of Hladik and Tetek. Privacy: docs/proofs/polylaplace.md;
the sampler: docs/proofs/sampler.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import UsageError
from sqlrs.noise.law import require_exact
from sqlrs.noise.randomness import RandomBits, Uniform
from sqlrs.sensitivity.exponential import exp_lower, power_up
from sqlrs.sensitivity.weights import Weights

DEFAULT_SHAPE = 5
MIN_SHAPE = 2
MAX_SHAPE = 64
RATIO_BITS = 40

_SHAPE_HINT = (
    f"give a whole number from {MIN_SHAPE} to {MAX_SHAPE}; {DEFAULT_SHAPE} suits most data"
)


class PolyLaplace:
    """Noise for a sensitivity that changes by at most `ratio`**2 between neighbours.

    `shape` (the letter a of the proofs) trades a slow decay of the weights for light tails: the
    weights fall by about e**(-epsilon / shape) a step and the tails of the noise like |x|**-shape.
    """

    name = "polylaplace"

    def __init__(self, epsilon: Decimal, shape: int = DEFAULT_SHAPE) -> None:
        if isinstance(shape, bool) or not isinstance(shape, int):
            raise UsageError("the shape must be a whole number", hint=_SHAPE_HINT)
        if not MIN_SHAPE <= shape <= MAX_SHAPE:
            raise UsageError("the shape is out of range", hint=_SHAPE_HINT)
        self.epsilon = parse_epsilon(epsilon)
        self.shape = shape
        self.ratio = smoothness_ratio(self.epsilon, shape)
        self.weights = Weights.from_ratio(self.ratio**2)
        self._law = TailLaw(shape)

    def scale(self, sensitivity: Fraction) -> Fraction:
        """The scale lambda of the noise. Private: it follows the data."""
        return require_exact(sensitivity) / (2 * (self.ratio - 1))

    def tail(self, scale: Fraction, k: int) -> Fraction:
        """The exact probability that the noise is at least k >= 0 in size; scale > 0."""
        if k <= 0:
            return Fraction(1)
        return Fraction(*self._law.over(2 * scale.numerator)((2 * k - 1) * scale.denominator))

    def sample(self, sensitivity: Fraction, bits: RandomBits) -> int:
        """The noise to add to the true count; always 0 where the sensitivity is 0."""
        scale = self.scale(sensitivity)
        if scale == 0:
            return 0
        size = self._size(scale, Uniform(bits))
        return -size if size and bits.bits(1) else size

    def _size(self, scale: Fraction, uniform: Uniform) -> int:
        """The largest k with uniform < P(size >= k): found by doubling, then by bisection."""
        step = scale.denominator
        tail = self._law.over(2 * scale.numerator)

        def reaches(k: int) -> bool:
            return uniform.below(*tail((2 * k - 1) * step))

        # Where the search starts changes its length only, never its result.
        low, high = 0, scale.numerator // scale.denominator + 1
        while reaches(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if reaches(middle):
                low = middle
            else:
                high = middle
        return low

    def tail_ceiling(self, distance: int, precision: int) -> int:
        """An upper bound of the chance of noise beyond a width W >= distance / 2**precision scales.

        The size n is the rounding of scale * |Y|, so n > W needs scale * |Y| > W.
        """
        return self._law.ceiling(distance, precision)

    def standard_error_multiple(self) -> float:
        """The standard error as a multiple of the sensitivity; infinite for shape 2."""
        return math.sqrt(self._law.second_moment()) / float(2 * (self.ratio - 1))

    def median_error_multiple(self) -> float:
        """The median error as a multiple of the sensitivity."""
        return self._law.median() / float(2 * (self.ratio - 1))

    def describe(self) -> str:
        """One line for people, made of public parameters alone."""
        return (
            f"polylaplace noise of shape {self.shape}, epsilon {self.epsilon}: standard error "
            f"{self.standard_error_multiple():.3g} and median error "
            f"{self.median_error_multiple():.3g} times the sensitivity"
        )

    def __repr__(self) -> str:
        return f"PolyLaplace(epsilon={self.epsilon}, shape={self.shape})"


def shape_with_error_bars(epsilon: Decimal, epsilon2: Decimal) -> int:
    """The shape where the scale is published at the price epsilon2: public, as both prices are.

    The published index of the scale wanders by about 1 / epsilon2 steps of epsilon / shape each. At
    twice epsilon / epsilon2 that is half a power of e, and the interval is 1.5 times as wide as
    with the scale known; larger shapes narrow it by little and raise sensitivities that grow.
    """
    return min(MAX_SHAPE, max(DEFAULT_SHAPE, math.ceil(2 * Fraction(epsilon) / Fraction(epsilon2))))


def smoothness_ratio(epsilon: Decimal, shape: int) -> Fraction:
    """The largest r = m / 2**40 that a lower bound of e**(epsilon / (2 * shape)) allows.

    So r**(2 * shape) <= e**epsilon, which is what the privacy proof needs.
    """
    bound = exp_lower(Fraction(epsilon) / (2 * shape))
    return Fraction((bound.numerator << RATIO_BITS) // bound.denominator, 1 << RATIO_BITS)


class TailLaw:
    """G(y) = P(|Y| > y) for noise Y of scale 1: a rational number at every rational y.

    With kappa = 2 (a-1)^(a-1) / a^a and C = (a-1)^(a-1) (a+1)^(a+1) / a^(2a),
    G(y) = [(1-y)^a + kappa] / (1+kappa) up to y = 1/a and C (1+y)^(-a) / (1+kappa) beyond.
    """

    def __init__(self, shape: int) -> None:
        self._shape = shape
        self._power: int = shape**shape
        self._lift: int = 2 * (shape - 1) ** (shape - 1)
        self._outer: int = (shape - 1) ** (shape - 1) * (shape + 1) ** (shape + 1)

    def over(self, unit: int) -> Callable[[int], tuple[int, int]]:
        """G as a function of x for y = x / unit: numerator and denominator, not reduced."""
        shape, power = self._shape, self._power
        unit_power = unit**shape
        total = power + self._lift
        inner_denominator = total * unit_power
        lifted = self._lift * unit_power
        outer_numerator = self._outer * unit_power
        outer_factor = power * total

        def tail(x: int) -> tuple[int, int]:
            if shape * x <= unit:
                return power * (unit - x) ** shape + lifted, inner_denominator
            return outer_numerator, outer_factor * (unit + x) ** shape

        return tail

    def ceiling(self, x: int, precision: int) -> int:
        """An upper bound of G at y = x / 2**precision, in units of 2**-precision."""
        # Powers that are rounded up stay short; exact ones would have thousands of digits.
        one, total = 1 << precision, self._power + self._lift
        if self._shape * x <= one:
            inner = power_up(one - x, self._shape, precision)
            return -(-(self._power * inner + (self._lift << precision)) // total)
        shrunk = power_up(-(-one * one // (one + x)), self._shape, precision)
        return -(-self._outer * shrunk // (self._power * total))

    def second_moment(self) -> float:
        """E Y**2, the integral of 2 y G(y): infinite for shape 2."""
        a = self._shape
        if a == MIN_SHAPE:
            return math.inf
        kappa = Fraction(self._lift, self._power)
        near, far = 1 - Fraction(1, a), 1 + Fraction(1, a)
        inner = 2 * ((1 - near ** (a + 1)) / (a + 1) - (1 - near ** (a + 2)) / (a + 2))
        outer = 2 * (far ** (2 - a) / (a - 2) - far ** (1 - a) / (a - 1))
        constant = Fraction(self._outer, self._power**2)
        return float((inner + kappa / a**2 + constant * outer) / (1 + kappa))

    def median(self) -> float:
        """The y with G(y) = 1/2; it is at most 1/a for every shape from 2."""
        kappa = self._lift / self._power
        return float(1 - ((1 - kappa) / 2) ** (1 / self._shape))
