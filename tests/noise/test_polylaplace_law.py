import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.errors import UsageError
from sqlrs.noise import DEFAULT_SHAPE, PolyLaplace
from sqlrs.noise.polylaplace import MAX_SHAPE, MIN_SHAPE, TailLaw
from tests.noise.oracle import polylaplace_tail, rounded_probability

SCALES = [Fraction(1, 50), Fraction(1, 2), Fraction(7, 5), Fraction(30), Fraction(10**9, 7)]


@given(
    st.integers(MIN_SHAPE, MAX_SHAPE),
    st.fractions(min_value=0, max_value=10**6, max_denominator=10**6),
)
def test_the_tail_is_the_integral_of_the_density(shape: int, y: Fraction) -> None:
    tail = TailLaw(shape).over(y.denominator)
    assert Fraction(*tail(y.numerator)) == polylaplace_tail(shape, y)


@pytest.mark.parametrize("shape", [2, 3, 5, 10, 20, 64])
def test_the_two_pieces_of_the_tail_join(shape: int) -> None:
    """One unit beyond the joint the outer piece continues the inner one, in value and slope."""
    unit = shape * 10**9
    tail = TailLaw(shape).over(unit)
    before, joint, after = (Fraction(*tail(10**9 + step)) for step in (-1, 0, 1))
    assert before > joint > after
    assert abs((before - joint) / (joint - after) - 1) < Fraction(1, 10**6)


@pytest.mark.parametrize("shape", [2, 5, 20])
@pytest.mark.parametrize("scale", SCALES)
def test_probabilities_are_those_of_the_rounded_law(shape: int, scale: Fraction) -> None:
    mechanism = PolyLaplace(Decimal(1), shape)
    for k in (0, 1, 2, 3, 10, 1000, 10**9, 10**12):
        assert mechanism.tail(scale, k) == rounded_tail(shape, scale, k)


def rounded_tail(shape: int, scale: Fraction, k: int) -> Fraction:
    return polylaplace_tail(shape, (k - Fraction(1, 2)) / scale) if k > 0 else Fraction(1)


@pytest.mark.parametrize("shape", [2, 3, 5, 10, 20])
@pytest.mark.parametrize("scale", SCALES)
def test_probabilities_sum_to_one_and_fall_with_distance(shape: int, scale: Fraction) -> None:
    mechanism = PolyLaplace(Decimal(1), shape)
    sizes = 60
    tails = [mechanism.tail(scale, k) for k in range(sizes + 2)]
    assert tails[0] == 1
    probabilities = [high - low for high, low in itertools.pairwise(tails)]
    assert sum(probabilities[:sizes]) + tails[sizes] == 1
    two_sided = [probabilities[0], *(part / 2 for part in probabilities[1:])]
    assert all(low < high for high, low in itertools.pairwise(two_sided))
    assert two_sided[:sizes] == [rounded_probability(shape, scale, n) for n in range(sizes)]
    assert mechanism.tail(scale, 10**40) < Fraction(1, 10**15)


@pytest.mark.parametrize("shape", [3, 4, 5, 10, 20, 64])
def test_the_standard_error_is_that_of_the_law(shape: int) -> None:
    """E Y**2 = integral of 2 y G(y), by Simpson's rule in the variable y = x / (1 - x)."""
    mechanism = PolyLaplace(Decimal(1), shape)
    law = TailLaw(shape).over(10**9)

    def integrand(x: float) -> float:
        y = x / (1 - x)
        numerator, denominator = law(int(y * 10**9))
        return 2 * y * (numerator / denominator) / (1 - x) ** 2

    # The joint of the two pieces is a node, so that the rule is accurate on both sides of it.
    pieces = ((0.0, 1 / (shape + 1)), (1 / (shape + 1), 0.99), (0.99, 1 - 1e-7))
    second_moment = sum(simpson(integrand, low, high, 2000) for low, high in pieces)
    exact = mechanism.standard_error_multiple() * float(2 * (mechanism.ratio - 1))
    assert math.sqrt(second_moment) == pytest.approx(exact, rel=2e-3 if shape < 5 else 1e-5)


def simpson(function: Callable[[float], float], low: float, high: float, steps: int) -> float:
    width = (high - low) / steps
    inner = sum((4 if i % 2 else 2) * function(low + i * width) for i in range(1, steps))
    return (function(low) + inner + function(high)) * width / 3


@pytest.mark.parametrize("shape", range(MIN_SHAPE, MAX_SHAPE + 1))
def test_half_of_the_noise_lies_within_the_median(shape: int) -> None:
    mechanism = PolyLaplace(Decimal(1), shape)
    median = Fraction(mechanism.median_error_multiple()) * 2 * (mechanism.ratio - 1)
    assert float(polylaplace_tail(shape, median)) == pytest.approx(0.5, abs=1e-9)
    assert median <= Fraction(1, shape) + Fraction(1, 10**9)


def test_the_published_errors_at_epsilon_one() -> None:
    """Standard and median error in units of the sensitivity, as the documentation states them."""
    published = {5: (1.99, 0.76), 10: (1.65, 0.73), 20: (1.52, 0.71)}
    for shape, (standard, median) in published.items():
        mechanism = PolyLaplace(Decimal(1), shape)
        assert round(mechanism.standard_error_multiple(), 2) == standard
        assert round(mechanism.median_error_multiple(), 2) == median
    assert PolyLaplace(Decimal(1), 2).standard_error_multiple() == math.inf


@pytest.mark.parametrize("shape", [1, 0, -3, MAX_SHAPE + 1, 2.5, "5", True, None])
def test_a_shape_out_of_range_is_refused(shape: object) -> None:
    with pytest.raises(UsageError) as caught:
        PolyLaplace(Decimal(1), shape)  # type: ignore[arg-type]
    assert caught.value.hint


def test_the_default_shape_is_used() -> None:
    assert PolyLaplace(Decimal(1)).shape == DEFAULT_SHAPE


@pytest.mark.parametrize("sensitivity", [0.5, 12.25, Decimal("3.5"), "4", True, None])
def test_an_inexact_sensitivity_is_refused_without_naming_it(sensitivity: object) -> None:
    with pytest.raises(TypeError) as caught:
        PolyLaplace(Decimal(1)).scale(sensitivity)  # type: ignore[arg-type]
    assert str(sensitivity) not in str(caught.value)


def test_a_negative_sensitivity_is_refused_without_naming_it() -> None:
    with pytest.raises(ValueError, match="negative") as caught:
        PolyLaplace(Decimal(1)).scale(Fraction(-77))
    assert "77" not in str(caught.value)
