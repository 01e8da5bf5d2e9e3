"""What all mechanisms share that cut at a private threshold and add Laplace noise in its size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from sqlrs.answer import Clipping
from sqlrs.epsilon import split_epsilon
from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.vector_base import GroupMeasurements
from sqlrs.noise import Laplace, RandomBits
from sqlrs.records import dataclass


@dataclass(frozen=True, repr=False)
class CutDraw:
    """Measured values, which are private. Each of the two releases must be charged before it.

    ``choose`` gives the place of a threshold, ``noisy`` the numbers that are cut at it.
    """

    choose: Callable[[RandomBits], int]
    noisy: Callable[[int, Laplace, RandomBits], tuple[Noisy, ...]]
    noise: Laplace

    def __call__(self, bits: RandomBits) -> tuple[Noisy, ...]:
        """Both at once, with the noise of a release in one step."""
        return self.noisy(self.choose(bits), self.noise, bits)

    def __repr__(self) -> str:
        return "CutDraw(private)"


class CutAtThreshold(ABC):
    """Epsilon is split between the choice of a threshold of the grid and the noise.

    ``choice_share``: the part that chooses. ``worth``: what one of the measure's whole numbers is
    worth.
    """

    choice_share: ClassVar[Decimal]
    epsilon: Decimal
    coverage: Fraction | None
    worth: Fraction

    @property
    @abstractmethod
    def thresholds(self) -> Sequence[int]:
        """The public grid."""

    @property
    @abstractmethod
    def moved(self) -> Fraction:
        """How many thresholds a neighbour may move all numbers in all."""

    @cached_property
    def split(self) -> tuple[Decimal, Laplace]:
        """What chooses the threshold, and the noise. One threshold needs no choice."""
        if len(self.thresholds) == 1:
            return Decimal(0), Laplace(self.epsilon)
        choice, rest = split_epsilon(self.epsilon, self.choice_share)
        return choice, Laplace(rest)

    @property
    def choice_epsilon(self) -> Decimal:
        """What the choice of the threshold costs."""
        return self.split[0]

    @property
    def noise(self) -> Laplace:
        """The noise of each number, whose sensitivity is public once the threshold is."""
        return self.split[1]

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """Choice and noise together: error bars tell nothing that is not public."""
        return (self.epsilon,)

    @abstractmethod
    def prepare(self) -> CutAtThreshold:
        """Itself; what is missing or too much work is refused here."""

    @abstractmethod
    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> CutDraw:
        """Take all measurements; the snapshot may end before anything is drawn."""

    @abstractmethod
    def half_width(self, place: int, noise: Laplace, miss: Fraction) -> int:
        """How far a number strays from the one after the cut, but for a chance of ``miss``.

        Public once the threshold is chosen.
        """

    def clipping(self, place: int, noise: Laplace | None = None) -> Clipping:
        """What is public once the threshold is chosen."""
        threshold = self.thresholds[place] * self.worth
        multiple = (noise or self.noise).standard_error_multiple()
        return Clipping(threshold, multiple * float(self.moved * threshold), self.cuts(place))

    def cuts(self, place: int) -> bool:
        """Whether a unit can contribute more than this threshold, by the query alone."""
        return True

    @abstractmethod
    def said_of_choice(self) -> str:
        """The cut in words, with the grid and what its choice costs."""

    def said(self, cut: str, noise: str) -> str:
        """The split of epsilon, and the error as a multiple of the threshold."""
        moved = float(self.moved)
        said = (
            f"clipped: {cut}, and laplace noise{noise}, epsilon {self.noise.epsilon}: "
            f"standard error {moved * self.noise.standard_error_multiple():.3g} and median "
            f"error {moved * self.noise.median_error_multiple():.3g} times the threshold"
        )
        if self.coverage is None:
            return said
        return (
            f"{said}, free error bars of coverage {float(self.coverage):.4g} around the number "
            "after the cut"
        )


def nearest(numerator: int, parts: int) -> int:
    """The nearest whole number; halves go up."""
    return (2 * numerator + parts) // (2 * parts)
