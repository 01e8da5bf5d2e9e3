"""Two-sided geometric noise: an integer y with probability proportional to e**(-epsilon |y|).

Exact, in a time that does not depend on epsilon, by the method of Canonne, Kamath and Steinke
("The Discrete Gaussian for Differential Privacy", 2020). Proof: docs/proofs/sampler.md.
"""

from __future__ import annotations

from fractions import Fraction

from sqlrs.noise.randomness import RandomBits, coin, integer_below


def two_sided_geometric(epsilon: Fraction, bits: RandomBits) -> int:
    """An integer y with probability proportional to e**(-epsilon |y|), exactly; epsilon > 0."""
    while True:
        size = geometric(epsilon, bits)
        # Zero would come up under either sign: it counts under one of them only.
        if not bits.bits(1):
            return size
        if size:
            return -size


def geometric(epsilon: Fraction, bits: RandomBits) -> int:
    """An integer k >= 0 with probability proportional to e**(-epsilon k), exactly."""
    fine = epsilon.denominator
    while True:
        # x = part + fine * whole has probability proportional to e**(-x / fine).
        part = integer_below(fine, bits)
        if exponential_coin(part, fine, bits):
            whole = 0
            while exponential_coin(1, 1, bits):
                whole += 1
            return (part + fine * whole) // epsilon.numerator


def exponential_coin(numerator: int, denominator: int, bits: RandomBits) -> bool:
    """True with probability e**(-numerator / denominator), exactly; the exponent is at most 1."""
    count = 1
    while coin(numerator, denominator * count, bits):
        count += 1
    return count % 2 == 1
