"""The vector law: its exact probabilities and the privacy loss of the released integers.

For independent signs P(|X_1| > x_1, ..., |X_d| > x_d) = (1 + sum of x_i / scale)**-a, so the
probability of every rounded vector is a signed sum of rational numbers.
"""

import itertools
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.noise.lomax import Lomax
from tests.noise.oracle import exponential_bounds

Vector = tuple[int, ...]
LARGE = Fraction(10**6)


def probability(scale: Fraction, shape: int, vector: Vector) -> Fraction:
    """P(rounded noise = vector), by inclusion and exclusion over the corners of its box."""
    half = Fraction(1, 2)
    sides = [(max(Fraction(0), abs(n) - half), abs(n) + half) for n in vector]
    total = Fraction(0)
    for corner in itertools.product((0, 1), repeat=len(vector)):
        reach = sum((side[c] for side, c in zip(sides, corner, strict=True)), Fraction(0))
        total += (-1) ** sum(corner) * (1 + reach / scale) ** -shape
    signs: int = 2 ** sum(1 for n in vector if n)
    return total / signs


def moved(vector: Vector, shift: Vector) -> Vector:
    return tuple(a - b for a, b in zip(vector, shift, strict=True))


def worst_ratio(
    law: Lomax, one: Fraction, other: Fraction, shift: Vector, outputs: Iterable[Vector]
) -> Fraction:
    """The largest ratio of probabilities, either way, of sensitivities one and other."""
    scales = law.scale(one), law.scale(other)
    worst = Fraction(1)
    for output in outputs:
        first = probability(scales[0], law.shape, output)
        second = probability(scales[1], law.shape, moved(output, shift))
        worst = max(worst, first / second, second / first)
    return worst


def shifts(size: int, most: int) -> list[Vector]:
    """Ways in which counts can move by `most` in all."""
    first = [
        tuple(sign * most if i == j else 0 for i in range(size)) for sign in (1, -1) for j in (0,)
    ]
    shared = most // size
    return [*first, (shared,) * size, (0,) * size]


def places(size: int, shift: Vector, scale: Fraction) -> list[Vector]:
    """Where the loss can peak: both centres, beyond both, and far out."""
    far = [int(scale * 10**power) for power in (0, 3, 9)]
    corners = [tuple(sign * f for _ in range(size)) for f in far for sign in (1, -1)]
    beyond = [tuple(n - s for n, s in zip((0,) * size, shift, strict=True))]
    return [(0,) * size, shift, tuple(2 * s for s in shift), *beyond, *corners]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 5), Fraction(1, 2)])
def test_the_loss_never_exceeds_epsilon_and_nearly_reaches_it(
    epsilon: str, size: int, share: Fraction
) -> None:
    law = Lomax(Decimal(epsilon), size, share)
    allowed, _ = exponential_bounds(Fraction(epsilon))
    worst = Fraction(1)
    for factor in (Fraction(1), (1 + law.ratio) / 2, law.ratio):
        for shift in shifts(size, int(LARGE)):
            outputs = places(size, shift, law.scale(LARGE))
            worst = max(worst, worst_ratio(law, LARGE, LARGE * factor, shift, outputs))
    assert worst <= allowed
    assert math.log(worst) >= 0.99 * float(epsilon)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_law_that_is_slightly_wrong_is_noticed(size: int) -> None:
    """Negative controls: noise 1 % too small, a sensitivity that moves 1 % more than promised."""
    _, allowed = exponential_bounds(Fraction(1))
    law = Lomax(Decimal(1), size)
    shift = shifts(size, int(LARGE))[0]
    outputs = places(size, shift, law.scale(LARGE))
    law.pull *= Fraction(101, 100)
    assert worst_ratio(law, LARGE, LARGE * law.ratio, shift, outputs) > allowed
    law = Lomax(Decimal(1), size)
    wider = LARGE * (1 + (law.ratio - 1) * Fraction(110, 100))
    assert worst_ratio(law, LARGE, wider, shift, outputs) > allowed
    law = Lomax(Decimal(1), size)
    further = shifts(size, int(LARGE * Fraction(102, 100)))[0]
    assert worst_ratio(law, LARGE, LARGE * law.ratio, further, outputs) > allowed


@given(
    st.sampled_from(["0.1", "1", "4"]),
    st.sampled_from([Fraction(1, 10), Fraction(1, 5), Fraction(9, 10)]),
    st.fractions(min_value=Fraction(1, 100), max_value=1000, max_denominator=100),
    st.fractions(min_value=0, max_value=1, max_denominator=100),
    st.lists(st.tuples(st.fractions(-1, 1), st.fractions(-4, 4)), min_size=1, max_size=3),
)
def test_any_pair_of_neighbours_at_any_output(
    epsilon: str,
    share: Fraction,
    sensitivity: Fraction,
    growth: Fraction,
    coordinates: list[tuple[Fraction, Fraction]],
) -> None:
    size = len(coordinates)
    law = Lomax(Decimal(epsilon), size, share)
    allowed, _ = exponential_bounds(Fraction(epsilon))
    wider = sensitivity * (1 + growth * (law.ratio - 1))
    whole = max(sum((abs(s) for s, _ in coordinates), Fraction(0)), Fraction(1))
    shift = tuple(math.trunc(s / whole * sensitivity) for s, _ in coordinates)
    output = tuple(math.floor(place * law.scale(wider)) for _, place in coordinates)
    assert worst_ratio(law, sensitivity, wider, shift, [output]) <= allowed


@pytest.mark.parametrize(("size", "share"), [(1, Fraction(1, 5)), (2, Fraction(1, 2))])
def test_probabilities_sum_to_one(size: int, share: Fraction) -> None:
    law = Lomax(Decimal(1), size, share)
    scale, reach = Fraction(1, 3), 40
    box = itertools.product(range(-reach, reach + 1), repeat=size)
    inside = sum((probability(scale, law.shape, vector) for vector in box), Fraction(0))
    beyond = size * (1 + (reach + Fraction(1, 2)) / scale) ** -law.shape
    assert 1 - beyond <= inside < 1


@pytest.mark.parametrize("epsilon", ["0.01", "1", "8"])
@pytest.mark.parametrize("size", [1, 2, 5, 100, 10_000])
def test_the_conditions_of_the_proof_hold(epsilon: str, size: int) -> None:
    law = Lomax(Decimal(epsilon), size)
    total = size + law.shape
    allowed, _ = (float(bound) for bound in exponential_bounds(Fraction(epsilon)))
    ratio, pull = law.ratio, law.pull
    # In logarithms: powers of this size are too long for exact fractions.
    exact = [
        size * math.log1p(float(ratio - 1)) + total * math.log1p(float(pull / ratio)),
        total * math.log1p(float(pull)),
        law.shape * math.log1p(float(ratio - 1)),
    ]
    assert max(exact) <= math.log(allowed) * (1 + 1e-9)
    assert max(exact[:2]) >= 0.999 * math.log(allowed)
