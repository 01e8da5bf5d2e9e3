import math
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction

import pytest

import sqlrs.noise.geometric
from sqlrs.noise.geometric import exponential_coin, geometric, two_sided_geometric
from tests.noise.oracle import deviation_allowed, exponential_bounds
from tests.noise.sources import CutOffError, Decisions, SeededBits, walk

SEED = 20240610
SAMPLES = 6_000
ERROR_RATE = 1e-6


class Shallow(Decisions):
    """Cuts paths of more than 16 decisions."""

    def coin(self, numerator: int, denominator: int, source: object = None) -> bool:
        if len(self.taken) >= 16:
            raise CutOffError
        return super().coin(numerator, denominator)


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)])
def test_the_exponential_coin_is_exact(exponent: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path of up to 16 decisions; what is cut has a chance of exponent**16 / 16! only."""
    chances: dict[bool, Fraction] = defaultdict(Fraction)

    def sampler(decisions: Decisions) -> int:
        monkeypatch.setattr(sqlrs.noise.geometric, "coin", decisions.coin)
        return exponential_coin(exponent.numerator, exponent.denominator, decisions)

    for outcome, probability in walk(sampler, Shallow):
        chances[bool(outcome)] += probability
    low, high = (1 / bound for bound in reversed(exponential_bounds(exponent)))
    cut = exponent**16 / math.factorial(16)
    assert sum(chances.values()) == 1 - cut
    assert low - cut <= chances[True] <= high
    assert 1 - high - cut <= chances[False] <= 1 - low


def replace_e(
    monkeypatch: pytest.MonkeyPatch, decisions: Decisions, base: Fraction, fine: int
) -> None:
    """Put a rational in the place of e**(-1 / fine), so that whole laws can be compared exactly."""

    def stand_in(numerator: int, denominator: int, source: object) -> bool:
        chance = base ** (numerator * fine // denominator)
        return decisions.coin(chance.numerator, chance.denominator)

    monkeypatch.setattr(sqlrs.noise.geometric, "exponential_coin", stand_in)
    monkeypatch.setattr(sqlrs.noise.geometric, "integer_below", decisions.integer_below)


def law_of(
    sampler: Callable[[Fraction, Decisions], int],
    epsilon: Fraction,
    base: Fraction,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[int, Fraction]:
    """The mass of each outcome of one attempt, long runs cut off."""
    fine = epsilon.denominator

    class OneAttempt(Decisions):
        drawn = 0

        def integer_below(self, bound: int, source: object = None) -> int:
            if bound == fine:
                self.drawn += 1
                if self.drawn > 1:
                    raise CutOffError
            return super().integer_below(bound)

        def coin(self, numerator: int, denominator: int, source: object = None) -> bool:
            if len(self.taken) > 5:
                raise CutOffError
            return super().coin(numerator, denominator)

    def run(decisions: Decisions) -> int:
        replace_e(monkeypatch, decisions, base, fine)
        return sampler(epsilon, decisions)

    masses: dict[int, Fraction] = defaultdict(Fraction)
    for outcome, probability in walk(run, OneAttempt):
        masses[outcome] += probability
    return masses


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 5), Fraction(3, 7), Fraction(1, 1), Fraction(7, 3)]
)
def test_the_one_sided_law_is_geometric(epsilon: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Fraction(9, 10)
    masses = law_of(geometric, epsilon, base, monkeypatch)
    # Runs are cut at a whole part of 4; what lies surely below is complete.
    complete = 4 * epsilon.denominator // epsilon.numerator
    assert complete >= 1
    for size in range(complete):
        assert masses[size] == masses[0] * base ** (epsilon.numerator * size)


def test_the_two_sided_law_is_symmetric_and_counts_zero_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = Fraction(4, 5)
    masses = law_of(two_sided_geometric, Fraction(1, 3), base, monkeypatch)
    for size in range(12):
        assert masses[size] == masses[-size] == masses[0] * base**size


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 5), Fraction(6, 5)])
def test_frequencies_follow_the_law(epsilon: Fraction) -> None:
    """Error rate 1e-6; a loss of 1.3 epsilon a step must be seen.

    Epsilon stays below 2: beyond, nearly all draws are 0 and the control would have no power at
    this number of samples. The exact walks above cover larger values.
    """
    source = SeededBits(SEED)
    draws = [two_sided_geometric(epsilon, source) for _ in range(SAMPLES)]
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    assert largest_gap(draws, float(epsilon)) <= allowed, f"seed {SEED}"
    assert largest_gap(draws, 1.3 * float(epsilon)) > allowed, f"seed {SEED}"


def largest_gap(draws: list[int], epsilon: float) -> float:
    counts = Counter(draws)
    gap = running = 0.0
    for value in sorted(counts):
        running += counts[value] / len(draws)
        decay = math.exp(-epsilon)
        above = decay ** (value + 1) / (1 + decay) if value >= 0 else 0
        exact = 1 - above if value >= 0 else decay**-value / (1 + decay)
        gap = max(gap, abs(running - exact))
    return gap
