"""The choice from the largest threshold down: the same law as with all penalties at hand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from sqlrs.noise.falling_threshold import Penalty, choose_falling
from sqlrs.noise.randomness import EXTENSION_BITS
from tests.noise.sources import SeededBits


class Given:
    """One uniform number, and zeros after it."""

    def __init__(self, value: Fraction) -> None:
        self._first: int | None = int(value * 2**EXTENSION_BITS)

    def bits(self, count: int) -> int:
        assert count == EXTENSION_BITS
        found, self._first = self._first, None
        return found or 0


def shares(grid: Sequence[int], penalties: Sequence[Fraction]) -> list[Fraction]:
    """The chance of each threshold, to sixty digits."""
    with localcontext(prec=60):
        weights = [
            Decimal(t) ** Decimal("-2.5") * (-Decimal(p.numerator) / Decimal(p.denominator)).exp()
            for t, p in zip(grid, penalties, strict=True)
        ]
        total = sum(weights)
        return [Fraction(w / total) for w in weights]


def asked(
    penalties: Sequence[Fraction], floors: Sequence[Fraction], seen: list[int]
) -> Iterator[Penalty]:
    for place in reversed(range(len(penalties))):
        seen.append(place)
        yield Penalty(penalties[place], floors[place])


CASES: list[list[int | Fraction]] = [
    [0, 0, 0, 0],
    [9, 6, 2, 0],
    [Fraction(500), Fraction(31, 2), Fraction(1, 3), 0],
    [Fraction(10**6), 100, 1, Fraction(1, 7)],
    [3, 3, 3, Fraction(5, 2)],
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("grid", [(1, 2, 4, 8), (1, 2, 2**20, 2**40)])
@pytest.mark.parametrize("helpful", [False, True])
def test_it_is_the_inverse_of_the_distribution(
    case: int, grid: tuple[int, ...], helpful: bool
) -> None:
    """Whatever is known of the penalties below: only how many are asked for depends on it."""
    penalties = [Fraction(one) for one in CASES[case]]
    chances = shares(grid, penalties)
    own = [*penalties[:1], *penalties[:-1]]
    floors = own if helpful else [Fraction(0)] * len(grid)
    numbers = random.Random(case)
    uniforms = [Fraction(numbers.getrandbits(100), 2**100) for _ in range(40)]
    # Just beside the places where the answer changes, as well.
    bound = Fraction(0)
    for chance in reversed(chances):
        bound += chance
        uniforms += [bound - Fraction(1, 2**90), bound + Fraction(1, 2**90)]
    for uniform in uniforms:
        if not 0 <= uniform < 1:
            continue
        seen: list[int] = []
        place = choose_falling(grid, asked(penalties, floors, seen), Given(uniform))
        from_above = sum(chances[place + 1 :], Fraction(0))
        assert from_above <= uniform + Fraction(1, 2**100)
        assert uniform < from_above + chances[place]
        assert place in seen


def test_what_cannot_matter_is_not_asked_for() -> None:
    seen: list[int] = []
    penalties = [Fraction(400), Fraction(300), Fraction(200), Fraction(0)]
    floors = [Fraction(0), Fraction(400), Fraction(300), Fraction(200)]
    place = choose_falling((1, 2, 4, 8), asked(penalties, floors, seen), SeededBits(1))
    assert (place, seen) == (3, [3])


def test_a_wrong_floor_changes_the_law() -> None:
    """The control: a penalty below its floor is left out where it should have been asked for."""
    penalties, wrong = [Fraction(0), Fraction(0)], [Fraction(0), Fraction(100)]
    chances = shares((1, 4), penalties)
    assert abs(chances[0] - Fraction(32, 33)) < Fraction(1, 10**50)
    for uniform in (Fraction(1, 2), Fraction(3, 4)):
        assert choose_falling((1, 4), asked(penalties, penalties, []), Given(uniform)) == 0
        assert choose_falling((1, 4), asked(penalties, wrong, []), Given(uniform)) == 1
