import math
from decimal import Decimal
from fractions import Fraction

import pytest

from sqlrs.noise.laplace import Laplace, tail_ceiling
from tests.noise.oracle import exponential_bounds
from tests.noise.sources import ScriptedBits, SeededBits


def mass(scale: Fraction, n: int) -> float:
    t = math.exp(-float(1 / scale))
    return (1 - t) / (1 + t) * t ** abs(n)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("sensitivity", [Fraction(1), Fraction(3), Fraction(100)])
def test_the_loss_is_epsilon_at_the_full_shift_and_more_beyond(
    epsilon: str, sensitivity: Fraction
) -> None:
    """P(n) / P(n - S) = e**(S / scale) for n <= 0: an exponent that is compared exactly."""
    scale = Laplace(Decimal(epsilon)).scale(sensitivity)
    assert sensitivity / scale == Fraction(epsilon)
    # The negative control: one more than the sensitivity costs more than epsilon.
    assert (sensitivity + 1) / scale > Fraction(epsilon)


def test_no_sensitivity_means_no_noise_and_no_bits() -> None:
    assert Laplace(Decimal(1)).sample(Fraction(0), ScriptedBits([])) == 0
    assert Laplace(Decimal(1)).half_width(Fraction(0), Fraction(1, 20)) == 0


@pytest.mark.parametrize("sensitivity", [Fraction(1), Fraction(7, 2), Fraction(1000)])
def test_the_size_of_the_noise_follows_the_sensitivity(sensitivity: Fraction) -> None:
    law, source = Laplace(Decimal(1)), SeededBits(20261117)
    draws = [law.sample(sensitivity, source) for _ in range(4000)]
    t = math.exp(-float(1 / law.scale(sensitivity)))
    deviation = math.sqrt(2 * t) / (1 - t)
    assert deviation <= law.standard_error_multiple() * float(sensitivity)
    seen = math.sqrt(sum(d * d for d in draws) / len(draws))
    assert 0.9 * deviation < seen < 1.1 * deviation


@pytest.mark.parametrize("sensitivity", [Fraction(1, 3), Fraction(1), Fraction(50)])
@pytest.mark.parametrize("miss", [Fraction(1, 20), Fraction(1, 1000), Fraction(1, 2)])
def test_the_half_width_is_the_least_that_suffices(sensitivity: Fraction, miss: Fraction) -> None:
    law = Laplace(Decimal(1))
    width = law.half_width(sensitivity, miss)
    scale = law.scale(sensitivity)

    def beyond(w: int) -> float:
        return 1 - sum(mass(scale, n) for n in range(-w, w + 1))

    assert beyond(width) <= float(miss) + 1e-12
    assert width == 0 or beyond(width - 1) > float(miss) - 1e-12


def test_the_tail_is_bounded_from_above() -> None:
    for width in (0, 1, 10, 1000):
        scale = Fraction(7)
        low, _ = exponential_bounds(Fraction(width + 1, 7))
        assert tail_ceiling(scale, width) >= 2 / low / 2
