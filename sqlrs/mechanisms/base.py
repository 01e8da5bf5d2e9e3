"""What a release needs of a mechanism: which values, how they fold, and the noise that follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sqlrs.noise import Noise
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound


class Mechanism(Protocol):
    """A sensitivity and the noise that it scales. Which one is used never depends on the data."""

    @property
    def noise(self) -> Noise:
        """The law of the noise, with its epsilon, its weights and its errors for people."""
        ...

    def wanted(self, residuals: Residuals) -> tuple[Members, ...]:
        """The sets whose T_E the sensitivity needs; too many are refused."""
        ...

    def is_quick(self, residuals: Residuals) -> bool:
        """Whether the fold is quick enough, and monotone, so that it may be tried on limits."""
        ...

    def sensitivity(self, residuals: Residuals, values: Mapping[Members, int]) -> Bound:
        """The bound that scales the noise, from the values T_E. Private."""
        ...
