"""The vector sampler against the exact law, and the bits that decide a tie."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.noise import lomax
from sqlrs.noise.lomax import Lomax
from tests.noise.oracle import deviation_allowed
from tests.noise.sources import ScriptedBits, SeededBits

SEED = 20261117
SAMPLES = 4_000
ERROR_RATE = 1e-6
BITS = lomax._FIRST_BITS
FULL = 2**BITS
PRECISE = Context(prec=120)


def expected_sizes(law: Lomax, scale: Fraction, uniforms: list[Fraction]) -> list[int]:
    """From the definition, in decimals far longer than the sampler's."""
    sizes, before, log = [], Decimal(1), Decimal(0)
    exact_scale = PRECISE.divide(Decimal(scale.numerator), Decimal(scale.denominator))
    for place, uniform in enumerate(uniforms):
        value = PRECISE.divide(Decimal(uniform.numerator), Decimal(uniform.denominator))
        log = PRECISE.subtract(log, PRECISE.divide(value.ln(PRECISE), law.shape + place))
        now = log.exp(PRECISE)
        size = PRECISE.multiply(exact_scale, PRECISE.subtract(now, before))
        sizes.append(math.floor(size + Decimal("0.5")))
        before = now
    return sizes


@given(
    st.lists(st.integers(FULL >> 40, FULL - 1), min_size=1, max_size=4),
    st.fractions(min_value=Fraction(1, 100), max_value=10**6, max_denominator=1000),
)
def test_the_sizes_are_those_of_the_uniform_numbers(
    prefixes: list[int], sensitivity: Fraction
) -> None:
    law = Lomax(Decimal(1), len(prefixes))
    middle = [Fraction(2 * prefix + 1, 2 * FULL) for prefix in prefixes]
    sizes = expected_sizes(law, law.scale(sensitivity), middle)
    signs = [(1, 0) for size in sizes if size]
    source = ScriptedBits([(BITS, prefix) for prefix in prefixes] + signs)
    assert law.sample(sensitivity, source) == tuple(sizes)
    assert source.used_up


@pytest.mark.parametrize("sensitivity", [Fraction(1, 3), Fraction(50), Fraction(10**9)])
@pytest.mark.parametrize("sign", [0, 1])
def test_a_uniform_number_cut_by_a_boundary_draws_the_bits_that_decide(
    sensitivity: Fraction, sign: int
) -> None:
    law = Lomax(Decimal(1), 1)
    scale = law.scale(sensitivity)
    for k in (1, 2, int(scale) + 1):
        # Size k begins at M - 1 = (k - 1/2) / scale, that is at this U.
        edge = (1 + (k - Fraction(1, 2)) / scale) ** -law.shape
        cut = edge.numerator * FULL // edge.denominator
        for second, size in ((0, k), (FULL - 1, k - 1)):
            script = [(BITS, cut), (BITS, second)] + ([(1, sign)] if size else [])
            source = ScriptedBits(script)
            assert law.sample(sensitivity, source) == ((-size if sign else size),)
            assert source.used_up


def test_a_uniform_number_that_begins_with_zeros_is_no_error() -> None:
    law = Lomax(Decimal(1), 2)
    more = [(BITS, FULL // 5), (BITS, FULL // 7)]
    source = ScriptedBits([(BITS, 0), (BITS, FULL // 3), *more, (1, 1), (1, 0)])
    uniforms = [
        Fraction(high * FULL + low, FULL**2)
        for high, low in ((0, FULL // 5), (FULL // 3, FULL // 7))
    ]
    wanted = expected_sizes(law, law.scale(Fraction(1)), uniforms)
    assert law.sample(Fraction(1), source) == (-wanted[0], wanted[1])
    assert source.used_up


def test_no_sensitivity_means_no_noise_and_no_bits() -> None:
    assert Lomax(Decimal(1), 3).sample(Fraction(0), ScriptedBits([])) == (0, 0, 0)


def norm_at_most(law: Lomax, radius: float) -> float:
    """P(|X| / scale <= radius): the l1 norm follows a beta prime law of parameters d and a."""
    inside, trials = radius / (1 + radius), law.size + law.shape - 1
    return sum(
        math.comb(trials, j) * inside**j * (1 - inside) ** (trials - j)
        for j in range(law.size, trials + 1)
    )


def coordinate_at_most(law: Lomax, radius: float) -> float:
    return float(1 - (1 + radius) ** -law.shape)


def gap(values: list[float], exact: list[float]) -> float:
    """The largest gap between an empirical distribution, values in order, and the exact one."""
    count = len(values)
    return max(max(abs((i + 1) / count - p), abs(i / count - p)) for i, p in enumerate(exact))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_frequencies_follow_the_exact_law(size: int) -> None:
    """Error rate 1e-6 for each statistic; a scale 15 % too small must be seen."""
    law = Lomax(Decimal(1), size)
    source = SeededBits(SEED)
    sensitivity = Fraction(10**9)
    scale = float(law.scale(sensitivity))
    allowed = deviation_allowed(SAMPLES, ERROR_RATE) + 1e-6
    draws = [law.sample(sensitivity, source) for _ in range(SAMPLES)]

    def norms(unit: float) -> float:
        values = sorted(sum(map(abs, draw)) / unit for draw in draws)
        return gap(values, [norm_at_most(law, value) for value in values])

    assert norms(scale) <= allowed, f"seed {SEED}"
    assert norms(scale * 1.15) > allowed, f"seed {SEED}"
    for place in {0, size - 1}:
        values = sorted(abs(draw[place]) / scale for draw in draws)
        exact = [coordinate_at_most(law, value) for value in values]
        assert gap(values, exact) <= allowed, f"seed {SEED}"
        assert abs(sum(draw[place] > 0 for draw in draws) / SAMPLES - 0.5) <= allowed
