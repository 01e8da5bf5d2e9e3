"""Random bits, and the exact decisions that are made with them."""

from __future__ import annotations

import secrets
from typing import Protocol

EXTENSION_BITS = 128


class RandomBits(Protocol):
    """A source of independent fair bits."""

    def bits(self, count: int) -> int:
        """An integer uniform on 0 .. 2**count - 1."""
        ...


class SystemBits:
    """The operating system's cryptographic generator: the only source for a release."""

    def bits(self, count: int) -> int:
        """An integer uniform on 0 .. 2**count - 1."""
        return secrets.randbits(count)


class Uniform:
    """A real number uniform on [0, 1), of which only the bits that matter are ever drawn.

    The number lies in [prefix, prefix + 1) / 2**length. A comparison draws further bits until that
    interval lies on one side, so its outcome has exactly the right probability.
    """

    __slots__ = ("_length", "_prefix", "_source")

    def __init__(self, source: RandomBits) -> None:
        self._source = source
        self._prefix = source.bits(EXTENSION_BITS)
        self._length = EXTENSION_BITS

    def below(self, numerator: int, denominator: int) -> bool:
        """Whether the number is less than numerator / denominator; the denominator is positive."""
        while True:
            start = self._prefix * denominator
            target = numerator << self._length
            if start >= target:
                return False
            if start + denominator <= target:
                return True
            self._prefix = (self._prefix << EXTENSION_BITS) | self._source.bits(EXTENSION_BITS)
            self._length += EXTENSION_BITS


def coin(numerator: int, denominator: int, source: RandomBits) -> bool:
    """True with probability numerator / denominator, exactly."""
    return Uniform(source).below(numerator, denominator)


def integer_below(bound: int, source: RandomBits) -> int:
    """An integer uniform on 0 .. bound - 1, exactly; the bound is positive."""
    width = (bound - 1).bit_length()
    while True:
        drawn = source.bits(width)
        if drawn < bound:
            return drawn
