"""Clipped sums: what a threshold leaves of the units' contributions, and how many it cuts.

Pure functions on exact integers. Proofs: docs/proofs/clipping.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, count, takewhile
from math import isqrt

from sqlrs.measures import Contributions, Ordinals

PARTS = 2**16
"""Numbers of groups are scaled down in whole parts of 1 / PARTS."""

MOST_THRESHOLD = 2**120
"""Every engine compares whole numbers up to here, 37 digits, exactly."""


@lru_cache(maxsize=64)
def fine_grid(limit: int) -> tuple[int, ...]:
    """The whole parts of 2**(i / 4) below the limit, and the limit itself."""
    return _ended((isqrt(isqrt(2**i)) for i in count()), limit)


def doubling_grid(limit: int) -> tuple[int, ...]:
    """The powers of 2 below the limit, and the limit itself."""
    return _ended((2**i for i in count()), limit)


def _ended(steps: Iterable[int], limit: int) -> tuple[int, ...]:
    if not 1 <= limit <= MOST_THRESHOLD:
        raise ValueError("a grid ends at a whole number from 1 on, which every engine can compare")
    return (*dict.fromkeys(takewhile(lambda step: step < limit, steps)), limit)


def cut_units(contributions: Contributions) -> tuple[int, ...]:
    """s_j of each threshold: how many units are larger, and would be cut."""
    return _behind(contributions.units)


def clipped_number(contributions: Contributions, place: int) -> int:
    """Q(t_j) of one number: each unit's sum, cut to the range from -t_j to t_j."""
    if len(contributions.totals) > 1:
        raise ValueError("several groups are no single number")
    kept = sum(sum(totals[: place + 1]) for totals in contributions.totals.values())
    larger = _behind(contributions.units)[place]
    negative = _behind(contributions.below)[place]
    return kept + contributions.grid[place] * (larger - 2 * negative)


def parts_of(grid: Sequence[int]) -> int:
    """How many parts one of a unit that is not cut counts: one, where nothing is scaled down."""
    return 1 if len(grid) == 1 else PARTS


def clipped_parts(
    contributions: Contributions, place: int, groups: Sequence[Ordinals]
) -> tuple[int, ...]:
    """The numbers of all groups in parts; those of one unit add up to t_j times ``parts_of``.

    Units at a later place b have numbers that add up to t_b at most, and are scaled by t_j / t_b.
    """
    factors = scaling_factors(contributions.grid, place)
    none = (0,) * len(factors)
    return tuple(
        sum(f * t for f, t in zip(factors, contributions.totals.get(group, none), strict=True))
        for group in groups
    )


def scaling_factors(grid: Sequence[int], place: int) -> tuple[int, ...]:
    """How many parts one of a unit at each place counts; behind the grid there is no bound: 0."""
    parts, threshold = parts_of(grid), grid[place]
    later = (parts * threshold // larger for larger in grid[place + 1 :])
    return (*[parts] * (place + 1), *later, 0)


def _behind(numbers: Sequence[int]) -> tuple[int, ...]:
    """For each threshold, the sum of the numbers at later places."""
    upto = list(accumulate(numbers))
    return tuple(upto[-1] - own for own in upto[:-1])
