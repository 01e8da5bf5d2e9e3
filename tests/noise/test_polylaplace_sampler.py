from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.noise import PolyLaplace
from sqlrs.noise.randomness import EXTENSION_BITS
from tests.noise.oracle import deviation_allowed
from tests.noise.sources import ScriptedBits, SeededBits

FULL = 2**EXTENSION_BITS
SEED = 20240607
SAMPLES = 20_000
ERROR_RATE = 1e-6


def expected_size(mechanism: PolyLaplace, scale: Fraction, uniform: Fraction) -> int:
    """The largest k with uniform < P(size >= k), one k after the other."""
    size = 0
    while uniform < mechanism.tail(scale, size + 1):
        size += 1
    return size


@given(
    st.integers(FULL >> 12, FULL - 1),
    st.sampled_from([2, 5, 20]),
    st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=10**6),
)
def test_the_search_finds_the_place_of_the_uniform_number(
    prefix: int, shape: int, sensitivity: Fraction
) -> None:
    mechanism = PolyLaplace(Decimal(1), shape)
    scale = mechanism.scale(sensitivity)
    low, high = Fraction(prefix, FULL), Fraction(prefix + 1, FULL)
    size = expected_size(mechanism, scale, low)
    assert mechanism.tail(scale, size + 1) <= low < high <= mechanism.tail(scale, size)
    script = [(EXTENSION_BITS, prefix)] + ([(1, 0)] if size else [])
    source = ScriptedBits(script)
    assert mechanism.sample(sensitivity, source) == size
    assert source.used_up


@pytest.mark.parametrize("shape", [2, 5, 10])
@pytest.mark.parametrize("sensitivity", [Fraction(1, 3), Fraction(41, 10), Fraction(10**12)])
@pytest.mark.parametrize("sign", [0, 1])
def test_a_uniform_number_cut_by_a_probability_draws_the_bits_that_decide(
    shape: int, sensitivity: Fraction, sign: int
) -> None:
    mechanism = PolyLaplace(Decimal(1), shape)
    scale = mechanism.scale(sensitivity)
    near = [1, 2, 7, int(scale / 3) + 1, int(scale) + 1, int(scale * 5) + 1]
    for k in near:
        cut, remainder = divmod(mechanism.tail(scale, k) * FULL, 1)
        for second, size in ((0, k), (FULL - 1, k - 1)):
            assert 0 < remainder < 1
            script = [(EXTENSION_BITS, int(cut)), (EXTENSION_BITS, second)]
            source = ScriptedBits(script + ([(1, sign)] if size else []))
            assert mechanism.sample(sensitivity, source) == (-size if sign else size)
            assert source.used_up


def test_an_extreme_uniform_number_gives_extreme_noise_and_no_error() -> None:
    mechanism = PolyLaplace(Decimal(1), 5)
    second = FULL // 3
    source = ScriptedBits([(EXTENSION_BITS, 0), (EXTENSION_BITS, second), (1, 1)])
    size = -mechanism.sample(Fraction(1), source)
    scale = mechanism.scale(Fraction(1))
    uniform = Fraction(second, FULL**2)
    assert size > 10**6
    assert mechanism.tail(scale, size + 1) <= uniform < mechanism.tail(scale, size)


def test_no_sensitivity_means_no_noise_and_no_bits() -> None:
    assert PolyLaplace(Decimal(1)).sample(Fraction(0), ScriptedBits([])) == 0


def largest_gap(mechanism: PolyLaplace, scale: Fraction, sizes: list[int]) -> float:
    """The largest gap between the empirical distribution of the sizes and the exact one.

    Looked up at 300 of the sizes: that can only lower the gap, hence not raise the error rate.
    """
    ordered = sorted(sizes)
    gap = 0.0
    for size in set(ordered[:: len(ordered) // 300]):
        empirical = bisect_right(ordered, size) / len(ordered)
        gap = max(gap, abs(empirical - float(1 - mechanism.tail(scale, size + 1))))
    return gap


@pytest.mark.parametrize(
    ("shape", "sensitivity"),
    [(2, Fraction(3)), (5, Fraction(1, 2)), (5, Fraction(10**6, 7)), (20, Fraction(40))],
)
def test_frequencies_follow_the_exact_law(shape: int, sensitivity: Fraction) -> None:
    """Error rate 1e-6 for each of two statistics; a scale 10 % too small must be seen."""
    mechanism = PolyLaplace(Decimal(1), shape)
    source = SeededBits(SEED)
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    scale = mechanism.scale(sensitivity)
    draws = [mechanism.sample(sensitivity, source) for _ in range(SAMPLES)]
    assert largest_gap(mechanism, scale, [abs(draw) for draw in draws]) <= allowed, f"seed {SEED}"

    # Signs: Hoeffding's inequality has the same form as the bound above.
    signs = [draw > 0 for draw in draws if draw]
    tolerance = deviation_allowed(len(signs), ERROR_RATE)
    assert abs(sum(signs) / len(signs) - 0.5) <= tolerance, f"seed {SEED}"

    wrong = [mechanism.sample(sensitivity * Fraction(9, 10), source) for _ in range(SAMPLES)]
    assert largest_gap(mechanism, scale, [abs(draw) for draw in wrong]) > allowed, f"seed {SEED}"
