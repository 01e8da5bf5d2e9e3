"""What every noise mechanism offers to the release, to `explain` and to the error bars."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from sqlrs.noise.randomness import RandomBits
from sqlrs.sensitivity.weights import Weights


class ScaledLaw(Protocol):
    """What error bars need of a law: how its scale may change, and how far one number strays."""

    @property
    def weights(self) -> Weights:
        """The weights that the sensitivity must be folded with."""
        ...

    def scale(self, sensitivity: Fraction) -> Fraction:
        """The unit in which the noise is measured. Private: it follows the data."""
        ...

    def tail_ceiling(self, distance: int, precision: int) -> int:
        """An upper bound of the chance of noise beyond a width W >= distance / 2**precision scales.

        The chance is that of |noise| > W for an integer W, whatever the scale; it is returned as a
        whole number of units of 2**-precision.
        """
        ...


class Noise(ScaledLaw, Protocol):
    """Symmetric integer noise whose size follows a smooth sensitivity, at a cost of `epsilon`."""

    @property
    def name(self) -> str:
        """What the mechanism is called on the command line."""
        ...

    @property
    def epsilon(self) -> Decimal:
        """The privacy cost of one answer."""
        ...

    def sample(self, sensitivity: Fraction, bits: RandomBits) -> int:
        """The noise to add to the true count; always 0 where the sensitivity is 0."""
        ...

    def standard_error_multiple(self) -> float:
        """The standard error as a multiple of the sensitivity, for documentation only."""
        ...

    def median_error_multiple(self) -> float:
        """The median error as a multiple of the sensitivity, for documentation only."""
        ...

    def describe(self) -> str:
        """One line for people, made of public parameters alone."""
        ...


def require_exact(sensitivity: object) -> Fraction:
    """The sensitivity as a fraction; the error for an inexact or negative one names no value."""
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, (int, Fraction)):
        raise TypeError("a sensitivity must be an exact rational number")
    if sensitivity < 0:
        raise ValueError("a sensitivity cannot be negative")
    return Fraction(sensitivity)
