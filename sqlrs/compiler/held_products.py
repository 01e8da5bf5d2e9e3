"""Where a product of numbers of several tables is held: large factors are cut to one limit."""

from __future__ import annotations

from collections.abc import Sequence

MOST_PRODUCT = 10**27
"""Sums are exact to 38 digits: there is room for 10^11 of the largest products."""


def common_cut(bounds: Sequence[int]) -> int:
    """The largest limit such that the product of factors up to these bounds, cut to it, is held."""
    room, held = MOST_PRODUCT, sorted(bounds)
    for place, bound in enumerate(held):
        cut = _root(room, len(held) - place)
        if bound > cut:
            return cut
        room //= max(bound, 1)
    return max(held, default=1)


def _root(number: int, degree: int) -> int:
    """The largest whole number whose power of this degree is at most ``number``."""
    low, high = 0, number
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low
