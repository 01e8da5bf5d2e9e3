"""What a release needs of a mechanism: its price, what it measures, and the noise that follows."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from sqlrs.answer import Clipping, Interval
from sqlrs.measuring.measurements import Measurements
from sqlrs.noise import RandomBits
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals


@dataclass(frozen=True)
class Noisy:
    """What may leave: a count with its noise, and error bars where they were asked for.

    ``clipping``: where units are protected, how much of each could enter.
    """

    value: int
    error_bars: Interval | None = None
    clipping: Clipping | None = None


Draw = Callable[[RandomBits], Noisy]
"""Measured values, which are private, with all that is left to do: fold them and draw the noise."""


class Preparation(Protocol):
    """A mechanism for one query, from the query alone. What it refuses was refused before."""

    @property
    def wanted(self) -> tuple[Members, ...]:
        """The sets whose T_E it measures, for an explanation."""
        ...

    def measure(self, measurements: Measurements) -> Draw:
        """Take the measurements that it needs; the snapshot may end before the noise is drawn."""
        ...


class Mechanism(Protocol):
    """A sensitivity and the noise that it scales. Which one is used never depends on the data."""

    @property
    def name(self) -> str:
        """What an answer calls it."""
        ...

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """The epsilon of each part of an answer; together they are what it costs."""
        ...

    @property
    def coverage(self) -> Fraction | None:
        """The chance that the error bars hold the true count, None if none were asked for."""
        ...

    def describe(self) -> str:
        """One line for people and for the ledger, made of public parameters alone."""
        ...

    def fitted(self, residuals: Residuals) -> Mechanism:
        """The mechanism that answers this query; where there is a choice, by the query alone."""
        ...

    def prepare(self, residuals: Residuals) -> Preparation:
        """The mechanism for one query; one that would take too much work is refused."""
        ...
