"""What the noise should be, from its definitions, written without the package's formulas."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

PRECISE = Context(prec=80)


def exponential_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above e**exponent, from Python's correctly rounded decimal function."""
    argument = Context(prec=200).divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    value = Fraction(PRECISE.exp(argument))
    return value * (1 - Fraction(1, 10**70)), value * (1 + Fraction(1, 10**70))


def polylaplace_tail(shape: int, y: Fraction) -> Fraction:
    """P(|Y| > y): the integral of the density from y on, over its integral from 0 on.

    The density is (1-y)^(a-1) up to 1/a, then a multiple of (1+y)^-(a+1) that joins continuously.
    """
    joint = Fraction(1, shape)
    multiple = (1 - joint) ** (shape - 1) * (1 + joint) ** (shape + 1)

    def outer(start: Fraction) -> Fraction:
        return multiple * (1 + start) ** -shape / shape

    def inner(start: Fraction) -> Fraction:
        return ((1 - start) ** shape - (1 - joint) ** shape) / shape

    whole = inner(Fraction(0)) + outer(joint)
    return (outer(y) if y >= joint else inner(y) + outer(joint)) / whole


def rounded_probability(shape: int, scale: Fraction, n: int) -> Fraction:
    """P(noise = n) for the rounding of scale * Y to the nearest integer, Y symmetric."""
    half = Fraction(1, 2)
    if n == 0:
        return 1 - polylaplace_tail(shape, half / scale)
    low, high = (abs(n) - half) / scale, (abs(n) + half) / scale
    return (polylaplace_tail(shape, low) - polylaplace_tail(shape, high)) / 2


def quartic_weight(scale: Fraction, n: int) -> Fraction:
    """1 / (1 + (n / scale)**4)."""
    return 1 / (1 + (n / scale) ** 4)


def quartic_sum_bounds(scale: Fraction, terms: int = 400) -> tuple[Fraction, Fraction]:
    """Bounds of the sum of the quartic weights over all integers.

    The terms beyond N sum, on one side, to no more than the integral of (x / scale)**-4 from N on.
    Each term is rounded outwards to 2**-100, which keeps the fractions short.
    """
    count = max(terms, 20 * math.ceil(scale))
    unit = 2**100
    low = high = 0
    for n in range(1, count + 1):
        weight = quartic_weight(scale, n)
        floor = weight.numerator * unit // weight.denominator
        low, high = low + floor, high + floor + 1
    rest = scale**4 / (3 * Fraction(count) ** 3)
    return 1 + 2 * Fraction(low, unit), 1 + 2 * (Fraction(high, unit) + rest)


def deviation_allowed(samples: int, error_rate: float) -> float:
    """The largest gap between true and empirical distribution function, but for `error_rate`.

    The Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant: it holds for every law and
    every number of samples, so the error rate is a guarantee and not an approximation.
    """
    return math.sqrt(math.log(2 / error_rate) / (2 * samples))
