from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.sensitivity.exponential import (
    exp_lower,
    exp_negative_lower,
    exp_negative_upper,
    exp_upper,
    round_up,
)
from tests.noise.oracle import exponential_bounds

TINY = Fraction(1, 2**120)


@given(st.fractions(min_value=0, max_value=1000, max_denominator=10**20))
def test_bounds_of_the_exponential_are_close_and_on_the_right_side(exponent: Fraction) -> None:
    low, high = exponential_bounds(exponent)
    bound = exp_lower(exponent)
    assert low * (1 - TINY) <= bound <= high
    assert low <= exp_upper(exponent) <= high * (1 + TINY)
    assert 1 <= exp_negative_upper(exponent) * high <= 1 + 2 * TINY
    assert 1 - 2 * TINY <= exp_negative_lower(exponent) * low <= 1


def test_the_bounds_are_strict_for_a_positive_exponent() -> None:
    for exponent in (Fraction(1, 10**6), Fraction(1, 2), Fraction(1), Fraction(7, 3)):
        low, high = exponential_bounds(exponent)
        assert exp_lower(exponent) < low < high < exp_upper(exponent)
    assert exp_lower(Fraction(0)) == 1


def test_a_negative_exponent_is_refused() -> None:
    with pytest.raises(ValueError, match="x >= 0"):
        exp_lower(Fraction(-1, 2))
    with pytest.raises(ValueError, match="x >= 0"):
        exp_upper(Fraction(-1, 2))


@given(
    st.fractions(min_value=Fraction(1, 10**30), max_value=10**30).filter(bool),
    st.sampled_from([2, 8, 64, 128]),
)
def test_rounding_up_keeps_the_bits_and_never_goes_down(value: Fraction, bits: int) -> None:
    rounded = round_up(value, bits)
    assert value <= rounded <= value * (1 + Fraction(1, 2 ** (bits - 1)))
    mantissa = rounded.numerator
    while mantissa % 2 == 0:
        mantissa //= 2
    assert mantissa.bit_length() <= bits
    assert rounded.denominator & (rounded.denominator - 1) == 0
    assert round_up(rounded, bits) == rounded


def test_rounding_up_is_the_least_such_number() -> None:
    candidates = [
        Fraction(mantissa) * Fraction(2) ** exponent
        for mantissa in (4, 5, 6, 7)
        for exponent in range(-8, 6)
    ]
    for numerator in range(1, 60):
        for denominator in range(1, 30):
            value = Fraction(numerator, denominator)
            assert round_up(value, 3) == min(c for c in candidates if c >= value)
