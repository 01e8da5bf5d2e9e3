"""Two-sided geometric noise for a sensitivity that the query alone fixes: the discrete Laplace law.

Privacy: docs/proofs/laplace.md; the sampler: docs/proofs/sampler.md.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from sqlrs.epsilon import parse_epsilon
from sqlrs.noise.geometric import two_sided_geometric
from sqlrs.noise.law import require_exact
from sqlrs.noise.randomness import RandomBits
from sqlrs.sensitivity.exponential import exp_negative_lower, exp_negative_upper

_FAR = Fraction(4096)


class Laplace:
    """Noise for numbers that move by at most a public S in all between neighbours.

    Each of them gets an integer y with probability proportional to e**(-epsilon |y| / S).
    """

    name = "laplace"

    def __init__(self, epsilon: Decimal) -> None:
        self.epsilon = parse_epsilon(epsilon)

    def scale(self, sensitivity: Fraction) -> Fraction:
        """S / epsilon. Public, as the sensitivity is."""
        return require_exact(sensitivity) / Fraction(self.epsilon)

    def sample(self, sensitivity: Fraction, bits: RandomBits) -> int:
        """The noise to add to one true number; always 0 where the sensitivity is 0."""
        scale = self.scale(sensitivity)
        return two_sided_geometric(1 / scale, bits) if scale else 0

    def half_width(self, sensitivity: Fraction, miss: Fraction) -> int:
        """The least W with P(|noise| > W) <= miss. Public: it costs nothing to tell."""
        scale = self.scale(sensitivity)
        if not scale:
            return 0
        width = 0
        high = 1
        while tail_ceiling(scale, high) > miss:
            width, high = high, 2 * high
        while high - width > 1:
            middle = (width + high) // 2
            if tail_ceiling(scale, middle) > miss:
                width = middle
            else:
                high = middle
        return high if tail_ceiling(scale, width) > miss else width

    def standard_error_multiple(self) -> float:
        """The standard error as a multiple of a large sensitivity; never more for a small one."""
        return math.sqrt(2) / float(self.epsilon)

    def median_error_multiple(self) -> float:
        """The median error as a multiple of a large sensitivity."""
        return math.log(2) / float(self.epsilon)

    def describe(self) -> str:
        """One line for people, made of public parameters alone."""
        return (
            f"laplace noise, epsilon {self.epsilon}: standard error "
            f"{self.standard_error_multiple():.3g} and median error "
            f"{self.median_error_multiple():.3g} times the sensitivity, which the query alone fixes"
        )

    def __repr__(self) -> str:
        return f"Laplace(epsilon={self.epsilon})"


def tail_ceiling(scale: Fraction, width: int) -> Fraction:
    """An upper bound of P(|noise| > width) = 2 t**(width + 1) / (1 + t), t = e**(-1 / scale).

    Further out than anybody asks for it stays what it is there: the work grows with the exponent,
    and a wished error of 10**12 would take for ever, before anything is charged.
    """
    exponent = min((width + 1) / scale, _FAR)
    return 2 * exp_negative_upper(exponent) / (1 + exp_negative_lower(1 / scale))
