"""The estimate of a scale that serves noises of many prices: its parts, and its coverage."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from sqlrs.errors import UsageError
from sqlrs.noise.published_scale import SHAPES, PublishedScale

MAXIMA = ("0.01", "0.3", "1", "7.125")


@pytest.mark.parametrize("maximum", MAXIMA)
def test_the_parts_of_the_price_add_up_to_the_maximum(maximum: str) -> None:
    scale = PublishedScale(Decimal(maximum))
    assert scale.epsilon + scale.laws[SHAPES[-1]].epsilon == Decimal(maximum)
    assert Decimal("0.079") < scale.epsilon / Decimal(maximum) < Decimal("0.081")
    # One scale for all: the bound is folded once, with the weights of them all.
    assert len({law.scale(Fraction(7, 3)) for law in scale.laws.values()}) == 1
    assert len({law.weights.decay for law in scale.laws.values()}) == 1
    assert [law.epsilon / scale.step for law in scale.laws.values()] == list(SHAPES)


@pytest.mark.parametrize("index", [0, 1, 200])
def test_more_epsilon_never_widens_the_interval(index: int) -> None:
    scale = PublishedScale(Decimal(1))
    widths = [scale.half_width(index, shape) for shape in SHAPES]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] >= 1
    assert scale.least_shape(index, Fraction(widths[0])) == SHAPES[0]
    assert scale.least_shape(index, Fraction(widths[-1])) is not None
    assert scale.least_shape(index, Fraction(widths[-1]) - 1) is None


def misses(scale: PublishedScale, sensitivity: Fraction, error: Fraction | None) -> float:
    """The exact chance to miss, where the cheapest shape is taken; without an error the worst."""
    decay = math.exp(-float(scale.epsilon))
    spread = math.ceil(12 / float(scale.epsilon))
    centre = scale._grid.index(scale.scale(sensitivity) * scale.multiple)
    total = 0.0
    for offset in range(-spread, spread + 1):
        index = max(0, centre + offset)
        shape = SHAPES[-1] if error is None else scale.least_shape(index, error) or SHAPES[-1]
        width = scale.half_width(index, shape)
        chance = float(scale.of_number(shape).tail(scale.scale(sensitivity), width + 1))
        total += (1 - decay) / (1 + decay) * decay ** abs(offset) * chance
    return total


@pytest.mark.parametrize("sensitivity", [Fraction(1, 50), Fraction(10**4, 3)])
def test_the_interval_holds_however_the_estimate_chooses(sensitivity: Fraction) -> None:
    scale = PublishedScale(Decimal(3))
    usual = scale.multiple * scale.scale(sensitivity)
    wishes = [usual * part for part in (Fraction(1, 30), Fraction(1, 10), Fraction(1, 2))]
    for wish in (None, *wishes):
        assert misses(scale, sensitivity, wish) <= 0.05


def test_a_narrower_interval_would_be_seen_to_miss() -> None:
    """Negative control: three quarters of the multiple break the promise."""
    scale = PublishedScale(Decimal(3))
    scale.__dict__["multiple"] = scale.multiple * Fraction(3, 4)
    on_grid = scale._grid.value(100) / scale.multiple
    sensitivity = on_grid / scale.scale(Fraction(1))
    assert misses(scale, sensitivity, None) > 0.05


def test_a_maximum_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="too small") as refused:
        PublishedScale(Decimal("0.0002"))
    least = str(refused.value.hint).split()[-1]
    assert PublishedScale(Decimal(least)).step > 0


@pytest.mark.parametrize("size", [2, 30])
def test_noises_of_several_numbers_share_one_sensitivity(size: int) -> None:
    scale = PublishedScale(Decimal(2), size=size)
    laws = scale.laws.values()
    assert scale.epsilon + scale.laws[SHAPES[-1]].epsilon == 2
    assert len({law.weights.decay for law in laws}) == len({law.ratio for law in laws}) == 1
    assert [law.shape for law in laws] == [size * shape for shape in SHAPES]
    # By the law's definition one number strays beyond y scales with chance (1 + y)**-a.
    sensitivity, decay = Fraction(10**6), math.exp(-float(scale.epsilon))
    centre = scale._grid.index(scale.scale(sensitivity) * scale.multiple)
    for error in (10**8, 10**7, 5 * 10**6):
        total, taken = 0.0, set()
        for offset in range(-200, 201):
            index = max(0, centre + offset)
            shape = scale.least_shape(index, Fraction(error)) or SHAPES[-1]
            law = scale.laws[shape]
            taken.add(shape)
            width = scale.half_width(index, shape) / float(law.scale(sensitivity))
            chance = (1 + width) ** -law.shape
            total += (1 - decay) / (1 + decay) * decay ** abs(offset) * chance
        assert 0.01 < total <= 0.05, (error, taken)


def test_a_maximum_that_is_too_small_for_many_numbers_is_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        PublishedScale(Decimal("0.01"), size=100)
