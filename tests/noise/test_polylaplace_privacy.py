"""The privacy loss of the released integer, in exact rational numbers."""

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.noise import PolyLaplace
from tests.noise.oracle import exponential_bounds

EPSILONS = ["0.1", "0.5", "1", "2", "4"]
SHAPES = [2, 3, 5, 10, 20]
LARGE = Fraction(3 * 10**7 + 1)


class Law:
    """The law of answer + noise for one database, from the tail that the package states."""

    def __init__(self, mechanism: PolyLaplace, answer: int, scale: Fraction) -> None:
        self._mechanism = mechanism
        self._answer = answer
        self._scale = scale

    def probability(self, released: int) -> Fraction:
        size = abs(released - self._answer)
        mass = self._mechanism.tail(self._scale, size) - self._mechanism.tail(self._scale, size + 1)
        return mass / 2 if size else mass


def worst_ratio(first: Law, second: Law, outputs: Iterator[int]) -> Fraction:
    worst = Fraction(1)
    for output in outputs:
        one, other = first.probability(output), second.probability(output)
        worst = max(worst, one / other, other / one)
    return worst


def critical_outputs(
    mechanism: PolyLaplace, narrow: Fraction, wide: Fraction, shift: int
) -> Iterator[int]:
    """Where the ratio can peak: both centres, both joints of the pieces, the best point between
    an inner and an outer piece, and far out. The narrow law is centred at 0, the wide one at shift.
    """
    joint = Fraction(1, mechanism.shape)
    points = [Fraction(0), Fraction(shift)]
    points += [sign * narrow * joint for sign in (-1, 1)]
    points += [shift + sign * wide * joint for sign in (-1, 1)]
    points += [wide * sign * 10**power for sign in (-1, 1) for power in (0, 1, 3, 9)]
    # With x behind the inner law's centre the loss is (a-1) ln(inside - x) + (a+1) ln(outside +
    # shift + x) up to a constant; its derivative vanishes at this x.
    a = mechanism.shape
    for inside, outside, centre, away in ((narrow, wide, 0, -1), (wide, narrow, shift, 1)):
        behind = ((a + 1) * inside - (a - 1) * (outside + shift)) / (2 * a)
        points.append(centre + away * behind)
    for point in points:
        yield from (math.floor(point) + step for step in (-1, 0, 1, 2))


def neighbours(mechanism: PolyLaplace, sensitivity: Fraction) -> Iterator[tuple[Fraction, int]]:
    """Wider sensitivities and shifts that a neighbour may have."""
    growth = mechanism.ratio**2
    for factor in (Fraction(1), (1 + growth) / 2, mechanism.ratio, growth):
        for shift in (0, math.floor(sensitivity / 2), math.floor(sensitivity)):
            yield sensitivity * factor, shift


def worst_loss(
    mechanism: PolyLaplace, sensitivity: Fraction, shrink: Fraction = Fraction(1)
) -> Fraction:
    worst = Fraction(1)
    narrow = mechanism.scale(sensitivity) * shrink
    for wider, shift in neighbours(mechanism, sensitivity):
        wide = mechanism.scale(wider) * shrink
        outputs = critical_outputs(mechanism, narrow, wide, shift)
        first, second = Law(mechanism, 0, narrow), Law(mechanism, shift, wide)
        worst = max(worst, worst_ratio(first, second, outputs))
    return worst


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_loss_never_exceeds_epsilon_and_nearly_reaches_it(epsilon: str, shape: int) -> None:
    mechanism = PolyLaplace(Decimal(epsilon), shape)
    allowed, _ = exponential_bounds(Fraction(epsilon))
    worst = worst_loss(mechanism, LARGE)
    assert worst <= allowed
    assert math.log(worst) >= 0.999 * float(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_scale_or_ratio_that_is_slightly_wrong_is_noticed(epsilon: str, shape: int) -> None:
    """Negative controls: noise 0.2 % too small, and a ratio 0.1 % of its excess too large."""
    mechanism = PolyLaplace(Decimal(epsilon), shape)
    _, allowed = exponential_bounds(Fraction(epsilon))
    # From epsilon = 2 a ln(a / (a-1)) on, between 2 and 2.8, a pure shift costs a little less.
    if float(epsilon) <= 2:
        assert worst_loss(mechanism, LARGE, shrink=Fraction(998, 1000)) > allowed
    mechanism.ratio += (mechanism.ratio - 1) / 1000
    assert worst_loss(mechanism, LARGE) > allowed


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("shape", [2, 5, 20])
def test_small_sensitivities_over_every_output_nearby(epsilon: str, shape: int) -> None:
    mechanism = PolyLaplace(Decimal(epsilon), shape)
    allowed, _ = exponential_bounds(Fraction(epsilon))
    for sensitivity in (Fraction(1, 9), Fraction(1, 2), Fraction(1), Fraction(13, 5), Fraction(6)):
        narrow = mechanism.scale(sensitivity)
        for wider, shift in neighbours(mechanism, sensitivity):
            first, second = Law(mechanism, 0, narrow), Law(mechanism, shift, mechanism.scale(wider))
            outputs = iter([*range(-25, 26), -(10**6), 10**6])
            assert worst_ratio(first, second, outputs) <= allowed


@given(
    st.sampled_from(EPSILONS),
    st.sampled_from(SHAPES),
    st.fractions(min_value=Fraction(1, 1000), max_value=10**6, max_denominator=1000),
    st.fractions(min_value=0, max_value=1, max_denominator=1000),
    st.fractions(min_value=0, max_value=1, max_denominator=1000),
    st.fractions(min_value=-5, max_value=5, max_denominator=10**6),
)
def test_any_pair_of_neighbours_at_any_output(
    epsilon: str,
    shape: int,
    sensitivity: Fraction,
    growth: Fraction,
    shift: Fraction,
    place: Fraction,
) -> None:
    mechanism = PolyLaplace(Decimal(epsilon), shape)
    allowed, _ = exponential_bounds(Fraction(epsilon))
    factor = 1 + growth * (mechanism.ratio**2 - 1)
    narrow, wide = mechanism.scale(sensitivity), mechanism.scale(sensitivity * factor)
    first = Law(mechanism, 0, narrow)
    second = Law(mechanism, math.floor(shift * sensitivity), wide)
    output = math.floor(place * wide)
    assert worst_ratio(first, second, iter([output - 1, output, output + 1])) <= allowed


def test_a_difference_larger_than_the_sensitivity_would_cost_more() -> None:
    """Negative control: the bound really depends on |q - q'| <= S."""
    mechanism = PolyLaplace(Decimal(1), 5)
    scale = mechanism.scale(LARGE)
    shift = math.floor(LARGE * Fraction(101, 100))
    outputs = critical_outputs(mechanism, scale, scale, shift)
    ratio = worst_ratio(Law(mechanism, 0, scale), Law(mechanism, shift, scale), outputs)
    assert ratio > exponential_bounds(Fraction(1))[1]
