"""Places at which a query is a signed sum: which of the parts is taken, one run after the other.

An outer join is a join, and the rows of one side, less those that have a partner. Whoever reads the
query asks at each such place which part to take; it is read once for each combination.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeVar

from sqlrs.refusals import refusal

MAX_ALTERNATIVES = 32

_Read = TypeVar("_Read")


class Choices:
    """The parts taken in one run: the given ones, then always the first."""

    def __init__(self, given: tuple[int, ...] = ()) -> None:
        self._given = given
        self.taken: list[tuple[int, tuple[int, ...]]] = []

    def of(self, *coefficients: int) -> int:
        """Which of several parts is taken here; each has a coefficient."""
        place = len(self.taken)
        chosen = self._given[place] if place < len(self._given) else 0
        self.taken.append((chosen, coefficients))
        return chosen

    @property
    def coefficient(self) -> int:
        """How often what was read counts."""
        return prod(coefficients[chosen] for chosen, coefficients in self.taken)

    def following(self) -> Choices | None:
        """The next combination; None after the last."""
        taken = list(self.taken)
        while taken:
            chosen, coefficients = taken.pop()
            if chosen + 1 < len(coefficients):
                return Choices((*(one for one, _ in taken), chosen + 1))
        return None


def every(read: Callable[[Choices], _Read]) -> list[tuple[int, _Read]]:
    """What is read by each combination, and how often it counts; first all first parts."""
    found: list[tuple[int, _Read]] = []
    choices: Choices | None = Choices()
    while choices is not None:
        if len(found) >= MAX_ALTERNATIVES:
            message = f"the query is a sum of more than {MAX_ALTERNATIVES} counts"
            hint = "use fewer outer joins, NOT EXISTS and branches of UNION ALL"
            raise refusal("too_complex", message, hint=hint)
        value = read(choices)
        found.append((choices.coefficient, value))
        choices = choices.following()
    return found
