"""Clipped sums: every unit of tiny worlds added, removed and replaced, against the definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from sqlrs.measures import Contributions, Ordinals
from sqlrs.sensitivity.clipping import (
    MOST_THRESHOLD,
    PARTS,
    clipped_number,
    clipped_parts,
    cut_units,
    doubling_grid,
    fine_grid,
    parts_of,
    scaling_factors,
)

Unit = tuple[int, ...]
GRID = (1, 2, 3, 5)
GROUPS: tuple[Ordinals, ...] = ((0,), (1,))


def placed(units: Sequence[Unit], grid: Sequence[int] = GRID) -> Contributions:
    """The contributions of units, each with its numbers in all groups."""
    places = len(grid) + 1
    at = [next((i for i, t in enumerate(grid) if size(u) <= t), len(grid)) for u in units]
    groups: list[Ordinals] = [()] if units and len(units[0]) == 1 else list(GROUPS)
    totals = {
        group: tuple(
            sum(u[number] for u, place in zip(units, at, strict=True) if place == here)
            for here in range(places)
        )
        for number, group in enumerate(groups)
        if units
    }
    return Contributions(
        tuple(grid),
        tuple(at.count(here) for here in range(places)),
        tuple(
            sum(1 for u, p in zip(units, at, strict=True) if p == here and sum(u) < 0)
            for here in range(places)
        ),
        totals,
    )


def size(unit: Unit) -> int:
    return sum(map(abs, unit))


def databases(kinds: Sequence[Unit], most: int = 2) -> Iterator[tuple[Unit, ...]]:
    for count in range(most + 1):
        yield from combinations_with_replacement(kinds, count)


SIGNED = [(n,) for n in (-9, -5, -3, -1, 0, 1, 2, 4, 6)]
POSITIVE = [(n,) for n in (0, 1, 2, 3, 4, 5, 6, 100)]
VECTORS = [*product((-3, 0, 1, 2), (-1, 0, 4)), (7, 0), (2, 9)]


def clipped(unit: int, threshold: int) -> int:
    return max(-threshold, min(threshold, unit))


@pytest.mark.parametrize("kinds", [SIGNED, POSITIVE])
def test_one_number_is_the_sum_of_clipped_numbers(kinds: list[Unit]) -> None:
    for units in databases(kinds, 3):
        found = placed(units)
        for place, threshold in enumerate(GRID):
            expected = sum(clipped(unit[0], threshold) for unit in units)
            assert clipped_number(found, place) == expected
            assert cut_units(found)[place] == sum(1 for unit in units if size(unit) > threshold)


def moves(
    kinds: Sequence[Unit], value: Callable[[Contributions, int], Sequence[int]], *, strict: bool
) -> dict[int, int]:
    """For each threshold, how far all numbers move in all between neighbours, at most."""
    farthest = dict.fromkeys(range(len(GRID)), 0)
    for units in databases(kinds, 1):
        larger = [placed((*units, unit)) for unit in kinds]
        pairs = [(placed(units), one) for one in larger]
        if strict:
            pairs += [(one, other) for one in larger for other in larger]
        for one, other in pairs:
            for place in farthest:
                values = zip(value(one, place), value(other, place), strict=True)
                farthest[place] = max(farthest[place], sum(abs(a - b) for a, b in values))
    return farthest


def number(found: Contributions, place: int) -> tuple[int]:
    return (clipped_number(found, place),)


def numbers(found: Contributions, place: int) -> tuple[int, ...]:
    return clipped_parts(found, place, GROUPS)


def test_one_number_moves_by_the_threshold() -> None:
    once = dict(enumerate(GRID))
    assert moves(POSITIVE, number, strict=False) == once
    assert moves(POSITIVE, number, strict=True) == once
    assert moves(SIGNED, number, strict=False) == once
    assert moves(SIGNED, number, strict=True) == {i: 2 * t for i, t in once.items()}


def test_numbers_of_groups_move_by_the_threshold_in_all() -> None:
    once = moves(VECTORS, numbers, strict=False)
    assert all(most <= PARTS * GRID[place] for place, most in once.items())
    twice = moves(VECTORS, numbers, strict=True)
    assert all(most <= 2 * PARTS * GRID[place] for place, most in twice.items())
    # A unit whose size is a threshold reaches it.
    assert once[2] == PARTS * 3
    assert twice[2] == 2 * PARTS * 3


def rounded_up(grid: Sequence[int], place: int) -> tuple[int, ...]:
    later = (-(-PARTS * grid[place] // larger) for larger in grid[place + 1 :])
    return (*[PARTS] * (place + 1), *later, 0)


def kept_behind(grid: Sequence[int], place: int) -> tuple[int, ...]:
    return (*scaling_factors(grid, place)[:-1], PARTS)


@pytest.mark.parametrize("wrong", [rounded_up, kept_behind])
def test_wrong_factors_are_seen(
    wrong: Callable[[Sequence[int], int], tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounded up, a unit is worth a part more; behind the grid nothing bounds it."""
    monkeypatch.setattr("sqlrs.sensitivity.clipping.scaling_factors", wrong)
    found = moves(VECTORS, numbers, strict=False)
    assert any(most > PARTS * GRID[place] for place, most in found.items())


@pytest.mark.parametrize("kinds", [SIGNED, POSITIVE, VECTORS])
def test_the_numbers_of_cut_units_move_one_way(kinds: list[Unit]) -> None:
    """By 0 or 1 where a unit comes; where one is replaced, all in the same direction."""
    for units in databases(kinds, 1):
        before = cut_units(placed(units))
        larger = [cut_units(placed((*units, unit))) for unit in kinds]
        for after in larger:
            assert {b - a for a, b in zip(before, after, strict=True)} <= {0, 1}
        for one, other in product(larger, repeat=2):
            steps = {b - a for a, b in zip(one, other, strict=True)}
            assert steps <= {0, 1} or steps <= {0, -1}


def test_scaled_numbers_are_near_the_exact_ones() -> None:
    """Below the true ones by the next step of the grid and one part at most."""
    grid = fine_grid(100)
    for place, threshold in enumerate(grid):
        for total in range(1, 101):
            found = clipped_parts(placed([(total, 0)], grid), place, GROUPS)
            exact = Fraction(min(total, threshold))
            assert exact * Fraction(2, 3) <= Fraction(found[0], PARTS) <= exact


def test_with_one_threshold_nothing_is_scaled() -> None:
    found = placed([(1, 0), (0, -1), (0, 2)], (1,))
    assert parts_of((1,)) == 1
    assert clipped_parts(found, 0, GROUPS) == (1, -1)
    assert clipped_parts(found, 0, [(7,)]) == (0,)


def test_no_unit_contributes_nothing() -> None:
    nothing = Contributions(GRID, (0,) * 5, (0,) * 5, {})
    assert clipped_number(nothing, 3) == 0
    assert clipped_parts(nothing, 1, GROUPS) == (0, 0)
    assert cut_units(nothing) == (0,) * 4


def test_several_groups_are_no_single_number() -> None:
    with pytest.raises(ValueError, match="no single number"):
        clipped_number(placed([(1, 2)]), 0)


def test_grids() -> None:
    assert fine_grid(1) == doubling_grid(1) == (1,)
    assert fine_grid(12) == (1, 2, 3, 4, 5, 6, 8, 9, 11, 12)
    assert doubling_grid(12) == (1, 2, 4, 8, 12)
    assert doubling_grid(16) == (1, 2, 4, 8, 16)
    grid = fine_grid(2**40)
    assert grid[-1] == 2**40 and len(grid) == 155
    for i in range(161):
        step = next(t for t in grid if (t + 1) ** 4 > 2**i)
        assert step**4 <= 2**i
    assert fine_grid(MOST_THRESHOLD)[-1] == MOST_THRESHOLD
    for limit in (0, -1, MOST_THRESHOLD + 1):
        with pytest.raises(ValueError, match="grid"):
            fine_grid(limit)
