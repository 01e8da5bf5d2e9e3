"""Rational bounds of the exponential function, and rounding in a chosen direction."""

from __future__ import annotations

from fractions import Fraction

_PRECISION = 160


def exp_lower(exponent: Fraction) -> Fraction:
    """A rational just below e**exponent, for exponent >= 0.

    The terms of the power series are positive; each is rounded down and their number is finite, so
    the sum is a lower bound.
    """
    if exponent < 0:
        raise ValueError("the series bounds e**x from below for x >= 0 only")
    term = total = 1 << _PRECISION
    index = 1
    while term:
        term = term * exponent.numerator // (exponent.denominator * index)
        total += term
        index += 1
    return Fraction(total, 1 << _PRECISION)


def exp_upper(exponent: Fraction) -> Fraction:
    """A rational just above e**exponent, for exponent >= 0.

    Each term is rounded up. From the index 2 * exponent on a term is at most half of the one
    before, so the terms left out sum to no more than the last one taken, which is added again.
    """
    if exponent < 0:
        raise ValueError("the series bounds e**x from above for x >= 0 only")
    term = total = 1 << _PRECISION
    index = 1
    while term > 1 or index <= 2 * exponent:
        term = -(-term * exponent.numerator // (exponent.denominator * index))
        total += term
        index += 1
    return Fraction(total + term, 1 << _PRECISION)


def exp_negative_upper(exponent: Fraction) -> Fraction:
    """A rational just above e**-exponent, for exponent >= 0."""
    return 1 / exp_lower(exponent)


def exp_negative_lower(exponent: Fraction) -> Fraction:
    """A rational just below e**-exponent, for exponent >= 0."""
    return 1 / exp_upper(exponent)


def round_up(value: Fraction, significant_bits: int) -> Fraction:
    """The least m * 2**e >= value with m < 2**significant_bits, or just a power of two; value > 0.

    It exceeds the value by less than one part in 2**(significant_bits - 1).
    """
    numerator, denominator = value.numerator, value.denominator
    # With this shift the scaled value has at least the wanted bits and at most one more.
    shift = significant_bits - numerator.bit_length() + denominator.bit_length()
    scaled = _ceil_shift(numerator, denominator, shift)
    if scaled >> significant_bits:
        shift -= 1
        scaled = _ceil_shift(numerator, denominator, shift)
    return Fraction(scaled << -shift) if shift <= 0 else Fraction(scaled, 1 << shift)


def power_up(base: int, exponent: int, precision: int) -> int:
    """An upper bound of base**exponent, both in units of 2**-precision, every product rounded up.

    For a base of at most 1 and exponents of machine size it is above by few units.
    """
    result = 1 << precision
    for bit in f"{exponent:b}":
        result = -(-result * result >> precision)
        if bit == "1":
            result = -(-result * base >> precision)
    return result


def _ceil_shift(numerator: int, denominator: int, shift: int) -> int:
    if shift >= 0:
        return -(-(numerator << shift) // denominator)
    return -(-numerator // (denominator << -shift))
