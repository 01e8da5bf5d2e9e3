"""The sampler of thresholds against the exact law, and the bits that decide a tie."""

from __future__ import annotations

import time
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.noise import threshold
from sqlrs.noise.threshold import choose_threshold, enclosed_weights
from sqlrs.sensitivity.clipping import fine_grid
from tests.noise.oracle import deviation_allowed
from tests.noise.sources import ScriptedBits, SeededBits

SEED = 20261118
SAMPLES = 6_000
ERROR_RATE = 1e-6
BITS = threshold._FIRST_BITS
FULL = 2**BITS
PRECISE = Context(prec=150, Emin=-(10**15), Emax=10**15)


def weights(grid: list[int], penalties: list[Fraction]) -> list[Decimal]:
    """From the definition, in decimals far longer than the sampler's."""
    found = []
    for one, penalty in zip(grid, penalties, strict=True):
        exponent = PRECISE.divide(Decimal(-penalty.numerator), Decimal(penalty.denominator))
        found.append(PRECISE.divide(PRECISE.exp(exponent), Decimal(one**3)))
    return found


def distribution(grid: list[int], penalties: list[Fraction]) -> list[Decimal]:
    """P(place <= j) of each place."""
    least = min(penalties)
    own = weights(grid, [penalty - least for penalty in penalties])
    total, upto, found = Decimal(0), Decimal(0), []
    for weight in own:
        total = PRECISE.add(total, weight)
    for weight in own:
        upto = PRECISE.add(upto, weight)
        found.append(PRECISE.divide(upto, total))
    return found


grids = st.lists(st.integers(1, 2**40), min_size=1, max_size=6, unique=True).map(sorted)
penalty = st.one_of(
    st.fractions(min_value=0, max_value=20, max_denominator=1000),
    st.integers(0, 10**9).map(lambda n: Fraction(3 * n, 10)),
)


@given(st.data(), grids)
def test_the_place_is_that_of_the_uniform_number(data: st.DataObject, grid: list[int]) -> None:
    penalties = data.draw(st.lists(penalty, min_size=len(grid), max_size=len(grid)))
    upto = distribution(grid, penalties)
    near = [int(PRECISE.multiply(p, Decimal(FULL))) for p in upto]
    places = st.one_of(
        st.integers(0, FULL - 1),
        st.sampled_from(near).flatmap(lambda n: st.integers(n - 9, n + 9)),
    )
    prefix = min(max(data.draw(places), 0), FULL - 1)
    # Read on in the middle of what is left, for as long as it takes.
    source = ScriptedBits([(BITS, prefix), (BITS, FULL // 2), (2 * BITS, 0)])
    uniform = PRECISE.divide(Decimal(2 * prefix + 1), Decimal(2 * FULL))
    expected = next((i for i, p in enumerate(upto) if uniform < p), len(grid) - 1)
    assert choose_threshold(grid, penalties, source) == expected


@pytest.mark.parametrize("apart", [Fraction(0), Fraction(5, 7), Fraction(30)])
def test_a_uniform_number_cut_by_a_boundary_draws_the_bits_that_decide(apart: Fraction) -> None:
    grid, penalties = [1, 2, 3], [Fraction(10**9) + apart, Fraction(10**9), Fraction(10**9)]
    for place, edge in enumerate(distribution(grid, penalties)[:-1]):
        cut = int(PRECISE.multiply(edge, Decimal(FULL)))
        for second, expected in ((0, place), (FULL - 1, place + 1)):
            source = ScriptedBits([(BITS, cut), (BITS, second)])
            assert choose_threshold(grid, penalties, source) == expected
            assert source.used_up


def test_a_boundary_that_is_met_exactly_is_decided_by_what_follows() -> None:
    """With nothing cut, the weights 1 and 1/8 part at 8/9; at 0 and 1 nothing parts."""
    cut = 8 * FULL // 9
    rest = 8 * FULL**2 // 9 - cut * FULL
    more = [(BITS, cut), (BITS, rest), (2 * BITS, FULL**2 - 1)]
    assert choose_threshold([1, 2], [Fraction(0)] * 2, ScriptedBits(more)) == 1
    for prefix, place in ((0, 0), (FULL - 1, 1)):
        source = ScriptedBits([(BITS, prefix)])
        assert choose_threshold([1, 2], [Fraction(4)] * 2, source) == place


@given(st.data(), grids, st.sampled_from([42, 50, 80]))
def test_weights_are_enclosed(data: st.DataObject, grid: list[int], digits: int) -> None:
    penalties = data.draw(st.lists(penalty, min_size=len(grid), max_size=len(grid)))
    least = min(penalties)
    low, high = enclosed_weights(grid, penalties, digits)
    exact = weights(grid, [one - least for one in penalties])
    for below, true, above in zip(low, exact, high, strict=True):
        assert below <= true <= above
        width = PRECISE.subtract(above, below)
        assert width <= max(above * Decimal(10) ** (8 - digits), Decimal(10) ** (-2 * digits))


@given(st.data(), grids, st.sampled_from([42, 80]))
def test_weights_of_half_powers_are_enclosed(
    data: st.DataObject, grid: list[int], digits: int
) -> None:
    """t**-2.5 is no decimal: its square, times t**5, lies around 1."""
    same = [data.draw(penalty)] * len(grid)
    low, high = enclosed_weights(grid, same, digits, 5)
    for one, below, above in zip(grid, low, high, strict=True):
        assert Fraction(below) ** 2 * one**5 <= 1 <= Fraction(above) ** 2 * one**5
        assert Fraction(above) - Fraction(below) <= Fraction(above) * Fraction(10) ** (8 - digits)


def gap(grid: list[int], penalties: list[Fraction], drawn: list[int]) -> float:
    """The largest gap between the empirical distribution and the exact one."""
    found = 0.0
    for place, exact in enumerate(distribution(grid, penalties)):
        share = sum(1 for one in drawn if one <= place) / len(drawn)
        found = max(found, abs(share - float(exact)))
    return found


def test_frequencies_follow_the_exact_law() -> None:
    """Error rate 1e-6; a gamma that is 15 % too large, and a prior of power 2, must be seen."""
    grid, cut = [1, 2, 4, 8], [6, 3, 1, 0]
    penalties = [Fraction(3, 5) * one for one in cut]
    bits = SeededBits(SEED)
    drawn = [choose_threshold(grid, penalties, bits) for _ in range(SAMPLES)]
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    assert gap(grid, penalties, drawn) <= allowed, SEED
    assert gap(grid, [one * Fraction(23, 20) for one in penalties], drawn) > allowed
    nothing = [Fraction(0)] * 3
    uncut = [choose_threshold(grid[:3], nothing, bits) for _ in range(SAMPLES)]
    assert gap(grid[:3], nothing, uncut) <= allowed, SEED
    # With the prior t**-2 P(1) would be 16/21 and not 64/73.
    first = uncut.count(0) / SAMPLES
    assert abs(first - 16 / 21) > allowed


def test_many_units_and_many_thresholds_take_little_time() -> None:
    grid = fine_grid(2**40)
    cut = [10**9 // (1 + one) for one in grid]
    bits = SeededBits(SEED)
    start = time.process_time()
    for _ in range(5):
        place = choose_threshold(grid, [Fraction(3 * s, 10) for s in cut], bits)
        assert grid[place] > 10**6
    assert (time.process_time() - start) / 5 < 0.1


@pytest.mark.parametrize(
    ("grid", "penalties"), [([], []), ([1], []), ([0], [Fraction(1)]), ([1, 2], [Fraction(1)])]
)
def test_what_is_no_choice_is_an_error(grid: list[int], penalties: list[Fraction]) -> None:
    with pytest.raises(ValueError, match="threshold"):
        choose_threshold(grid, penalties, SeededBits(0))
