"""An infinite sequence of numbers, each made from the one before, computed as far as it is read."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from threading import Lock


class LazySequence:
    """first, successor(first), successor(successor(first)), ...: the same for every thread."""

    def __init__(self, first: Fraction, successor: Callable[[Fraction], Fraction]) -> None:
        self._known = [first]
        self._successor = successor
        self._lock = Lock()

    def __getitem__(self, index: int) -> Fraction:
        if index < 0:
            raise IndexError("the sequence starts at 0")
        known = self._known
        if index >= len(known):
            # Two threads that extend at once would insert a number twice and shift the rest.
            with self._lock:
                while len(known) <= index:
                    known.append(self._successor(known[-1]))
        return known[index]
