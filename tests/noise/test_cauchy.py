import math
from bisect import bisect_right
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqlrs.noise.cauchy
from sqlrs.noise import Cauchy, RandomBits
from tests.noise.oracle import (
    deviation_allowed,
    exponential_bounds,
    quartic_sum_bounds,
    quartic_weight,
)
from tests.noise.sources import CutOffError, Decisions, ScriptedBits, SeededBits, walk

SEED = 20240608
SAMPLES = 20_000
ERROR_RATE = 1e-6


class FewOctaves(Decisions):
    """Cuts the paths beyond the first four octaves: their accepting coin is the ninth decision."""

    octaves = 4

    def coin(self, numerator: int, denominator: int, source: object = None) -> bool:
        if len(self.taken) >= self.octaves + 4:
            raise CutOffError
        return super().coin(numerator, denominator)


@pytest.mark.parametrize(
    "scale",
    [Fraction(1, 100), Fraction(1, 2), Fraction(99, 100), Fraction(1), Fraction(7, 5), Fraction(3)],
)
def test_one_proposal_accepts_each_integer_in_proportion_to_its_weight(
    scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every path of the sampler, with its exact probability: the law is exact, not approximate."""
    mechanism = Cauchy(Decimal(10))
    accepted: dict[int, Fraction] = defaultdict(Fraction)
    propose = sqlrs.noise.cauchy._proposal

    def sampler(decisions: Decisions) -> int:
        monkeypatch.setattr(sqlrs.noise.cauchy, "coin", decisions.coin)
        monkeypatch.setattr(sqlrs.noise.cauchy, "integer_below", decisions.integer_below)
        proposals = iter([propose])

        def propose_once(width: int, bits: RandomBits) -> tuple[int, int | None]:
            for allowed in proposals:
                return allowed(width, bits)
            raise CutOffError

        monkeypatch.setattr(sqlrs.noise.cauchy, "_proposal", propose_once)
        return mechanism.sample(scale, decisions)

    for noise, probability in walk(sampler, FewOctaves):
        accepted[noise] += probability

    reach = math.ceil(scale) * 2**FewOctaves.octaves
    assert sorted(accepted) == list(range(1 - reach, reach))
    for noise, probability in accepted.items():
        assert probability == accepted[0] * quartic_weight(scale, noise)
    # Rejections are few enough: at least three in ten proposals are accepted.
    assert sum(accepted.values()) >= Fraction(3, 10)


def test_a_scale_is_ten_sensitivities_over_epsilon() -> None:
    assert Cauchy(Decimal("0.5")).scale(Fraction(7, 3)) == Fraction(140, 3)


def test_no_sensitivity_means_no_noise_and_no_bits() -> None:
    assert Cauchy(Decimal(1)).sample(Fraction(0), ScriptedBits([])) == 0


def largest_gap(scale: Fraction, draws: list[int]) -> float:
    """The largest gap between the empirical and the exact distribution within 30 scales."""
    reach = 30 * math.ceil(scale)
    total = sum(quartic_sum_bounds(scale)) / 2
    weights = [1 / (1 + (n / float(scale)) ** 4) for n in range(-reach, reach + 1)]
    ordered = sorted(draws)
    missing = (float(total) - sum(weights)) / 2
    return max(
        abs(bisect_right(ordered, n) / len(ordered) - (missing + running) / float(total))
        for n, running in zip(range(-reach, reach + 1), accumulate(weights), strict=True)
    )


@pytest.mark.parametrize("sensitivity", [Fraction(1, 25), Fraction(1, 4), Fraction(30)])
def test_frequencies_follow_the_law(sensitivity: Fraction) -> None:
    """Error rate 1e-6; noise from another scale must be seen."""
    mechanism = Cauchy(Decimal(1))
    source = SeededBits(SEED)
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    scale = mechanism.scale(sensitivity)
    draws = [mechanism.sample(sensitivity, source) for _ in range(SAMPLES)]
    assert largest_gap(scale, draws) <= allowed, f"seed {SEED}"
    assert largest_gap(scale * Fraction(8, 5), draws) > allowed, f"seed {SEED}"


def loss_bound(mechanism: Cauchy, sensitivity: Fraction, wider: Fraction, shift: int) -> float:
    """An upper bound of the largest privacy loss, from bounds of the normalisers."""
    narrow, wide = mechanism.scale(sensitivity), mechanism.scale(wider)
    narrow_low, narrow_high = quartic_sum_bounds(narrow)
    wide_low, wide_high = quartic_sum_bounds(wide)
    reach = 6 * math.ceil(wide) + 5
    step = max(1, reach // 300)
    worst = Fraction(1)
    for n in [*range(-reach, reach + 1, step), -(10**9), 10**9]:
        ratio = quartic_weight(narrow, n) / quartic_weight(wide, n - shift)
        worst = max(worst, ratio * wide_high / narrow_low, narrow_high / wide_low / ratio)
    return math.log(worst)


SCALES = [Fraction(1, 100), Fraction(1, 5), Fraction(5, 7), Fraction(1), Fraction(3), Fraction(100)]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_loss_stays_below_the_proved_part_of_epsilon(epsilon: str) -> None:
    """Proved: (3**(3/4) / 10 + 4 / 10) epsilon = 0.628 epsilon, for every scale however small."""
    mechanism = Cauchy(Decimal(epsilon))
    growth = 1 / mechanism.weights.decay
    assert growth <= exponential_bounds(Fraction(epsilon) / 10)[0]
    worst = 0.0
    for scale in SCALES:
        sensitivity = scale * Fraction(epsilon) / 10
        for factor in (Fraction(1), (1 + growth) / 2, growth):
            for shift in {0, math.floor(sensitivity / 2), math.floor(sensitivity)}:
                loss = loss_bound(mechanism, sensitivity, sensitivity * factor, shift)
                worst = max(worst, loss / float(epsilon))
    # Not vacuous: the worst pair here loses more than two fifths of epsilon.
    assert 0.4 < worst <= 0.628


def test_more_than_the_allowed_change_is_noticed() -> None:
    """Negative control: three times the growth of the sensitivity costs more than epsilon."""
    mechanism = Cauchy(Decimal(1))
    growth = (1 / mechanism.weights.decay) ** 3
    assert loss_bound(mechanism, Fraction(20), 20 * growth, 20) > 1


@given(st.fractions(min_value=Fraction(1, 100), max_value=12, max_denominator=100))
def test_the_normaliser_grows_slower_than_the_fourth_power(scale: Fraction) -> None:
    """The step of the proof that covers small scales: 0 <= d ln Z / d ln sigma <= 4."""
    growth = Fraction(101, 100)
    low, high = quartic_sum_bounds(scale)
    next_low, next_high = quartic_sum_bounds(scale * growth)
    assert next_high >= low
    assert next_low <= high * growth**4
    # Another step, for the error bars: Z is at least twice the scale.
    assert high >= 2 * scale


def test_the_normaliser_has_the_closed_form_of_the_proof() -> None:
    for scale in (Fraction(1, 3), Fraction(7071, 10000), Fraction(1), Fraction(5, 2)):
        x = math.sqrt(2) * math.pi * float(scale)
        ratio = (math.sinh(x) + math.sin(x)) / (math.cosh(x) - math.cos(x))
        low, high = quartic_sum_bounds(scale)
        assert float(low) - 1e-6 <= ratio * float(scale) * math.pi / math.sqrt(2) <= float(high)
        assert ratio >= math.tanh(math.pi / 2) - 1e-12


@given(
    st.fractions(min_value=Fraction(1, 20), max_value=12, max_denominator=20),
    st.fractions(min_value=0, max_value=6, max_denominator=20),
)
def test_the_tail_ceiling_is_above_the_tail(scale: Fraction, distance: Fraction) -> None:
    mechanism = Cauchy(Decimal(10))
    width = math.ceil(distance * scale)
    low, _ = quartic_sum_bounds(scale)
    inside = sum(quartic_weight(scale, n) for n in range(-width, width + 1))
    fixed = (distance.numerator << 64) // distance.denominator
    bound = Fraction(mechanism.tail_ceiling(fixed, 64), 2**64)
    assert 1 - inside / low <= bound
    assert bound <= 1
    if distance >= 1:
        # Not vacuous: it is the expression of the proof, rounded up.
        continuous = distance**-3 / 3 - distance**-7 / 7 + distance**-11 / 11
        assert continuous <= bound <= continuous * (1 + Fraction(1, 2**40))


def test_the_error_multiples_are_the_published_ones() -> None:
    mechanism = Cauchy(Decimal(1))
    assert mechanism.standard_error_multiple() == 10
    assert round(mechanism.median_error_multiple(), 2) == 5.66
    assert "epsilon 1" in mechanism.describe()
