"""Numbers that say nothing about a private row: no noise, no cost."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.vector_base import (
    GroupMeasurements,
    Summand,
    VectorDraw,
    around,
    true_numbers,
)
from sqlrs.noise import RandomBits
from sqlrs.records import dataclass


@dataclass(frozen=True)
class ExactVector:
    """The true numbers of public tables alone; there is nothing to prepare."""

    summands: tuple[Summand, ...]
    size: int
    coverage: Fraction | None = None
    name = "exact"

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """Nothing."""
        return (Decimal(0),)

    def describe(self) -> str:
        """That there is no noise, and why."""
        return "no noise: no private row takes part"

    def prepare(self) -> ExactVector:
        """Itself."""
        return self

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> VectorDraw:
        """The true numbers; where there is no group, nothing is read for nothing is charged."""
        summands = self.summands if self.size else ()
        numbers = true_numbers(summands, measurements, domains, groups, self.size)

        def draw(bits: RandomBits) -> tuple[Noisy, ...]:
            return tuple(around(number, 0, self.coverage) for number in numbers)

        return draw
