"""Sources of bits for tests: seeded, scripted, and one that walks every decision of a sampler."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction


class SeededBits:
    """Reproducible bits. For tests only: a release must never be reproducible."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bits(self, count: int) -> int:
        return self._random.getrandbits(count)


class ScriptedBits:
    """Hands out given integers, and fails on a request of another size or past the end."""

    def __init__(self, script: Iterable[tuple[int, int]]) -> None:
        self._script = list(script)

    def bits(self, count: int) -> int:
        expected, value = self._script.pop(0)
        assert count == expected, f"asked for {count} bits, the script has {expected}"
        return value

    @property
    def used_up(self) -> bool:
        return not self._script


class CutOffError(Exception):
    """Raised by a walk to end a path that is not wanted."""


class Decisions:
    """Replays one path of a sampler and counts its exact probability.

    Its `coin`, `integer_below` and `bits` stand in for those of the package. `walk` runs a sampler
    along every path of decisions, depth first.
    """

    def __init__(self, prefix: list[int]) -> None:
        self._prefix = prefix
        self.taken: list[int] = []
        self.choices: list[int] = []
        self.probability = Fraction(1)

    def _choose(self, chances: list[Fraction]) -> int:
        place = len(self.taken)
        chosen = self._prefix[place] if place < len(self._prefix) else 0
        self.taken.append(chosen)
        self.choices.append(len(chances))
        self.probability *= chances[chosen]
        return chosen

    def coin(self, numerator: int, denominator: int, source: object = None) -> bool:
        chance = Fraction(numerator, denominator)
        assert 0 <= chance <= 1, "not a probability"
        return self._choose([1 - chance, chance]) == 1

    def integer_below(self, bound: int, source: object = None) -> int:
        return self._choose([Fraction(1, bound)] * bound)

    def bits(self, count: int) -> int:
        return self.integer_below(2**count)


def walk(
    sampler: Callable[[Decisions], int], kind: type[Decisions] = Decisions
) -> Iterator[tuple[int, Fraction]]:
    """Every outcome of a sampler with the probability of the path to it, cut paths left out."""
    prefix: list[int] | None = []
    while prefix is not None:
        decisions = kind(prefix)
        with contextlib.suppress(CutOffError):
            yield sampler(decisions), decisions.probability
        prefix = _next_path(decisions)


def _next_path(decisions: Decisions) -> list[int] | None:
    taken, choices = decisions.taken[:], decisions.choices
    while taken:
        if taken[-1] + 1 < choices[len(taken) - 1]:
            return [*taken[:-1], taken[-1] + 1]
        taken.pop()
    return None
