"""What a release of groups needs of a mechanism: its price, what it measures, and the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from sqlrs.answer import Interval
from sqlrs.measures import (
    Contributions,
    KeyDomain,
    Ordinals,
    OwnedResults,
    PerUnit,
    Signed,
)
from sqlrs.measuring.work import Fold, Folding, Values
from sqlrs.mechanisms.base import Noisy
from sqlrs.noise import RandomBits
from sqlrs.query import Term
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals

VectorDraw = Callable[[RandomBits], tuple[Noisy, ...]]
"""Measured values, which are private, with all that is left to do; one number for each group."""


@dataclass(frozen=True)
class Summand:
    """One term of a measure, with the residuals of its query."""

    signed: Signed
    residuals: Residuals

    def __post_init__(self) -> None:
        if self.residuals.query != self.signed.query:
            raise ValueError("these are the residuals of another query")

    @property
    def private(self) -> bool:
        """Whether any private row takes part in it."""
        return bool(self.signed.query.private)


class GroupMeasurements(Protocol):
    """The measurements that a vector of numbers is made of, all on one snapshot."""

    def totals(
        self, signed: Signed, residuals: Residuals, domains: Sequence[KeyDomain]
    ) -> Mapping[Ordinals, int]:
        """The true number of each group without its coefficient; a group left out has 0."""
        ...

    def values(
        self, residuals: Residuals, wanted: Iterable[Members], fold: Fold | Folding | None
    ) -> Values:
        """T_E of the wanted sets, or values that fold to the same."""
        ...

    def values_by_group(
        self,
        residuals: Residuals,
        wanted: Iterable[Members],
        keys: tuple[Term | None, ...],
        domains: Sequence[KeyDomain],
    ) -> Mapping[Ordinals, Values]:
        """T_E of the private rows of each group alone, also of groups without any."""
        ...

    def contributions(
        self,
        parts: Sequence[tuple[Signed, Residuals]] | PerUnit,
        domains: Sequence[KeyDomain],
        grid: Sequence[int],
    ) -> Contributions:
        """What the units contribute to each group, coefficients applied; each part has one owner.

        Results in no group are left out before a unit's numbers are added up.
        """
        ...

    def owned_results(self, signed: Signed, residuals: Residuals, most: int) -> OwnedResults:
        """The results of a query by their owners, without its coefficient.

        EngineFailed where they have more than ``most`` different sets of owners.
        """
        ...


class PreparedVector(Protocol):
    """A mechanism whose work is known and not too much."""

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> VectorDraw:
        """Take all measurements; the snapshot may end before the noise is drawn."""
        ...


class VectorMechanism(Protocol):
    """How one measure is released for all groups. Nothing here depends on the data."""

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
        """The chance that the error bars of one group hold its true number, None without any."""
        ...

    def describe(self) -> str:
        """One line for people and for the ledger, made of public parameters alone."""
        ...

    def prepare(self) -> PreparedVector:
        """What is to be measured; too much work is refused here, before anything is charged."""
        ...


def true_numbers(
    summands: Sequence[Summand],
    measurements: GroupMeasurements,
    domains: Sequence[KeyDomain],
    groups: Sequence[Ordinals],
    size: int,
) -> tuple[int, ...]:
    """The signed sum of each group. Private."""
    if len(groups) != size or len(set(groups)) != size:
        raise ValueError("a mechanism was made for another number of groups")
    numbers = [0] * size
    for summand in summands:
        totals = measurements.totals(summand.signed, summand.residuals, domains)
        for place, group in enumerate(groups):
            numbers[place] += summand.signed.coefficient * totals.get(group, 0)
    return tuple(numbers)


def around(value: int, half: int, coverage: Fraction | None) -> Noisy:
    """A released number, with the interval around it where there is a coverage."""
    if coverage is None:
        return Noisy(value)
    return Noisy(value, Interval(value - half, value + half, coverage))


def error_in_words(law: str, epsilon: Decimal, standard: float, median: float, why: str) -> str:
    """The error as multiples of the sensitivity, and why the law is the one that is used."""
    return (
        f"{law}, epsilon {epsilon}: standard error {standard:.3g} and median error {median:.3g} "
        f"times the sensitivity, {why}"
    )
