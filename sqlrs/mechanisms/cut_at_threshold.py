"""What all mechanisms share that cut at a private threshold and add Laplace noise in its size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from sqlrs.answer import Clipping
from sqlrs.epsilon import split_epsilon
from sqlrs.noise import Laplace


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

    def clipping(self, place: int) -> Clipping:
        """What is public once the threshold is chosen."""
        threshold = self.thresholds[place] * self.worth
        error = self.noise.standard_error_multiple() * float(self.moved * threshold)
        return Clipping(threshold, error, self.cuts(place))

    def cuts(self, place: int) -> bool:
        """Whether a unit can contribute more than this threshold, by the query alone."""
        return True

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
