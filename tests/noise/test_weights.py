from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.errors import UsageError
from sqlrs.noise import Cauchy, PolyLaplace, Weights
from sqlrs.noise.polylaplace import RATIO_BITS
from sqlrs.sensitivity.sequence import LazySequence
from tests.noise.oracle import exponential_bounds

EPSILONS = ["0.000001", "0.01", "0.1", "0.5", "1", "2", "4", "1000"]


def significant_bits(value: Fraction) -> int:
    mantissa = value.numerator
    while mantissa % 2 == 0:
        mantissa //= 2
    return mantissa.bit_length()


def check_smooth(weights: Weights, ratio_bound: Fraction, count: int = 300) -> None:
    assert weights[0] == 1
    for k in range(count):
        assert weights[k] <= ratio_bound * weights[k + 1]
        assert weights.decay * weights[k] <= weights[k + 1]
        assert weights[k + 1] <= weights.decay_ceiling * weights[k] < weights[k]
        assert significant_bits(weights[k + 1]) <= 64


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", [2, 3, 5, 10, 20, 64])
def test_polylaplace_weights_fall_by_at_most_the_square_of_the_ratio(
    epsilon: str, shape: int
) -> None:
    mechanism = PolyLaplace(Decimal(epsilon), shape)
    check_smooth(mechanism.weights, mechanism.ratio**2, count=60)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", [2, 3, 5, 10, 20, 64])
def test_the_ratio_is_the_largest_that_epsilon_allows(epsilon: str, shape: int) -> None:
    ratio = PolyLaplace(Decimal(epsilon), shape).ratio
    low, high = exponential_bounds(Fraction(epsilon))
    assert ratio ** (2 * shape) <= low
    # Where the ratio is huge its last unit is far below the precision of the series.
    unit = max(Fraction(1, 2**RATIO_BITS), ratio / 2**120)
    assert (ratio + unit) ** (2 * shape) > high
    assert (ratio * 2**RATIO_BITS).denominator == 1


@pytest.mark.parametrize("beta", ["0.000000001", "0.001", "0.1", "1", "30", "1000"])
def test_weights_of_a_beta_fall_by_at_most_its_exponential(beta: str) -> None:
    weights = Weights.from_beta(Fraction(beta))
    low, high = exponential_bounds(Fraction(beta))
    check_smooth(weights, low, count=60)
    assert weights.decay * low >= 1
    assert weights.decay * high <= 1 + Fraction(1, 2**62)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_cauchy_weights_use_a_tenth_of_epsilon(epsilon: str) -> None:
    low, high = exponential_bounds(Fraction(epsilon) / 10)
    decay = Cauchy(Decimal(epsilon)).weights.decay
    assert decay * low >= 1
    assert decay * high <= 1 + Fraction(1, 2**62)


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(-1), Fraction(1, 10**10), Fraction(1001)])
def test_a_beta_out_of_range_is_refused(beta: Fraction) -> None:
    with pytest.raises(UsageError) as caught:
        Weights.from_beta(beta)
    assert caught.value.hint


@pytest.mark.parametrize(
    "decay", [Fraction(0), Fraction(1), Fraction(3, 2), 1 - Fraction(1, 2**64)]
)
def test_a_decay_that_does_not_fall_is_refused(decay: Fraction) -> None:
    with pytest.raises(ValueError, match="weights"):
        Weights(decay)


def test_weights_start_at_zero() -> None:
    with pytest.raises(IndexError):
        Weights(Fraction(1, 2))[-1]


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=30).map(sorted),
    st.sampled_from(["0.1", "1", "4"]),
)
def test_a_sensitivity_folded_with_the_weights_is_smooth(bounds: list[int], epsilon: str) -> None:
    """L_k(I) <= L_(k+1)(I') for neighbours gives S(I) <= ratio**2 * S(I')."""
    mechanism = PolyLaplace(Decimal(epsilon), 5)
    weights = mechanism.weights

    def fold(values: list[int]) -> Fraction:
        return max(weights[k] * value for k, value in enumerate(values))

    # I' is as small as its neighbour I allows: L'_0 may be 0, and L'_(k+1) = L_k.
    assert fold(bounds) <= mechanism.ratio**2 * fold([0, *bounds])
    assert fold(bounds) >= bounds[0]


def test_rounding_down_would_break_smoothness() -> None:
    """Negative control: truncated weights fall by more than the ratio allows."""
    ratio = PolyLaplace(Decimal(1), 5).ratio ** 2
    weight, broken = Fraction(1), 0
    for _ in range(50):
        exact = weight / ratio
        shift = 64 - exact.numerator.bit_length() + exact.denominator.bit_length()
        truncated = Fraction((exact.numerator << shift) // exact.denominator, 1 << shift)
        broken += weight > ratio * truncated
        weight = truncated
    assert broken > 40


def test_threads_read_one_and_the_same_sequence() -> None:
    """The pause hands the processor to the other threads in the middle of every extension."""

    def successor(number: Fraction) -> Fraction:
        sleep(0.002)
        return number + 1

    sequence = LazySequence(Fraction(0), successor)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: sequence[8], range(4))) == [8] * 4
    assert [sequence[k] for k in range(12)] == list(range(12))
