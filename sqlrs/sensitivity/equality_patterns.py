"""Equality patterns: which positions hold one value. Positions are numbers, sets of them bits.

A pattern has for each column of the new row t the positions that hold its value. Columns have the
first positions; values that no column of t equals are never made equal to each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

Pattern = tuple[int, ...]
# Pairs of positions as bits of one number.
Pairs = int
_Key = TypeVar("_Key", bound=Hashable)


def merged(pattern: Pattern, column: int, block: int) -> Pattern:
    """The pattern once the positions of a block, which holds the column, are equal."""
    if not block & ~pattern[column]:
        return pattern
    whole = block
    for other in pattern:
        if other & block:
            whole |= other
    return tuple([whole if other & block else other for other in pattern])


def joined(pattern: Pattern, needs: Pattern) -> Pattern:
    """The finest pattern that is coarser than both."""
    for column, block in enumerate(needs):
        if block & ~pattern[column]:
            pattern = merged(pattern, column, block)
    return pattern


def least(pattern: Pattern, position: int) -> int:
    """The least position that holds the same value."""
    return next((c for c, block in enumerate(pattern) if block >> position & 1), position)


class PairBits:
    """Pairs of so many positions, each pair a bit."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._equal: dict[Pattern, Pairs] = {}

    def of(self, one: int, other: int) -> Pairs:
        """The bit of two positions, which may be one and the same."""
        return 1 << (one * self.width + other if one < other else other * self.width + one)

    def all_of(self, pairs: Iterable[tuple[int, int]]) -> Pairs:
        """The bits of several pairs."""
        found = 0
        for one, other in pairs:
            found |= self.of(one, other)
        return found

    def equal(self, pattern: Pattern) -> Pairs:
        """All pairs that the pattern makes equal."""
        known = self._equal.get(pattern)
        if known is None:
            known = 0
            for block in set(pattern):
                for one in places(block):
                    # With itself and with all greater ones of the block.
                    known |= (block >> one) << (one * self.width + one)
            self._equal[pattern] = known
        return known


def places(bits: int) -> Iterator[int]:
    """The places of the bits that are set."""
    return (i for i in range(bits.bit_length()) if bits >> i & 1)


def gathered(found: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    """For each key its places, as the bits of one number."""
    by_key: dict[_Key, int] = {}
    for key, place in found:
        by_key[key] = by_key.get(key, 0) | 1 << place
    return by_key
