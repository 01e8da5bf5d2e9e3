"""The mechanism of Dong and Yi: noise of density 1 / (1 + z**4), on the integers, sampled exactly.

Privacy and the sampler: docs/proofs/cauchy.md.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from sqlrs.epsilon import parse_epsilon
from sqlrs.noise.law import require_exact
from sqlrs.noise.randomness import RandomBits, coin, integer_below
from sqlrs.sensitivity.weights import Weights

RESERVE = 10


class Cauchy:
    """Noise n with probability proportional to 1 / (1 + (n / sigma)**4), sigma = 10 S / epsilon."""

    name = "cauchy"

    def __init__(self, epsilon: Decimal) -> None:
        self.epsilon = parse_epsilon(epsilon)
        self.weights = Weights.from_beta(Fraction(self.epsilon) / RESERVE)

    def scale(self, sensitivity: Fraction) -> Fraction:
        """The scale sigma of the noise. Private: it follows the data."""
        return RESERVE * require_exact(sensitivity) / Fraction(self.epsilon)

    def sample(self, sensitivity: Fraction, bits: RandomBits) -> int:
        """The noise to add to the true count; always 0 where the sensitivity is 0."""
        scale = self.scale(sensitivity)
        if scale == 0:
            return 0
        width = math.ceil(scale)
        high, low = scale.numerator**4, scale.denominator**4
        while True:
            noise, octave = _proposal(width, bits)
            denominator = high + low * noise**4
            if octave is not None:
                accepted = coin(2 * high * 17**octave, denominator << octave, bits)
            else:
                # -width came up with the middle only because the range must be even.
                accepted = noise != -width and coin(high, denominator, bits)
            if accepted:
                return noise

    def tail_ceiling(self, distance: int, precision: int) -> int:
        """An upper bound of the chance of noise beyond a width W >= distance / 2**precision scales.

        With u = W / sigma >= 1 the chance is at most the integral of z**-4 - z**-8 + z**-12 from u
        on, u**-3 / 3 - u**-7 / 7 + u**-11 / 11; below u = 1 nothing is claimed.
        """
        one = 1 << precision
        if distance < one:
            return one
        square = distance**2
        quartic, unit = square**2, one**4
        numerator = one**3 * (77 * quartic**2 - 33 * quartic * unit + 21 * unit**2)
        denominator = 231 * distance**3 * quartic**2
        return -(-(numerator << precision) // denominator)

    def standard_error_multiple(self) -> float:
        """The standard error as a multiple of the sensitivity: Z has variance 1."""
        return RESERVE / float(self.epsilon)

    def median_error_multiple(self) -> float:
        """The median error as a multiple of the sensitivity."""
        return _MEDIAN * RESERVE / float(self.epsilon)

    def describe(self) -> str:
        """One line for people, made of public parameters alone."""
        return (
            f"cauchy noise, epsilon {self.epsilon}: standard error "
            f"{self.standard_error_multiple():.3g} and median error "
            f"{self.median_error_multiple():.3g} times the sensitivity"
        )

    def __repr__(self) -> str:
        return f"Cauchy(epsilon={self.epsilon})"


def _proposal(width: int, bits: RandomBits) -> tuple[int, int | None]:
    """A candidate n and its octave j, with |n| from width * 2**j to twice that, or the middle."""
    if coin(26, 43, bits):
        return integer_below(2 * width, bits) - width, None
    octave = 0
    while coin(4, 17, bits):
        octave += 1
    start = width << octave
    size = start + integer_below(start, bits)
    return (-size if bits.bits(1) else size), octave


def _median() -> float:
    """The median of |Z| by bisection on its distribution function."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _distribution(middle) < 0.5:
            low = middle
        else:
            high = middle
    return low


def _distribution(z: float) -> float:
    """P(|Z| <= z) for the density sqrt(2) / (pi (1 + z**4))."""
    root = math.sqrt(2)
    logarithm = math.log((z * z + root * z + 1) / (z * z - root * z + 1)) / 2
    return (logarithm + math.atan(root * z + 1) + math.atan(root * z - 1)) / math.pi


_MEDIAN = _median()
