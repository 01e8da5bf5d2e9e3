"""Groups of a query that fixes its own sensitivity: Laplace noise on each, and free error bars."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sqlrs.effort import bounded_analysis
from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.steady import Steady
from sqlrs.mechanisms.vector_base import (
    GroupMeasurements,
    Summand,
    VectorDraw,
    around,
    error_in_words,
    true_numbers,
)
from sqlrs.noise import Laplace, RandomBits
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.constant import constant_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weighted import counted, largest_weight, needs_sums


@dataclass(frozen=True)
class ConstantVector:
    """Independent Laplace noise on each group; ``moves`` times S bounds how far all move in all."""

    summands: tuple[Summand, ...]
    size: int
    moves: int
    noise: Laplace
    coverage: Fraction | None = None

    @property
    def name(self) -> str:
        """The name of the noise."""
        return self.noise.name

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """That of the noise: error bars tell nothing that is not public."""
        return (self.noise.epsilon,)

    def describe(self) -> str:
        """The noise with its error as a multiple of the sensitivity, and the error bars."""
        steady = Steady(self.noise, self.coverage)
        if self.size == 1:
            return steady.describe()
        said = error_in_words(
            f"laplace noise for each of {self.size} groups",
            self.noise.epsilon,
            self.moves * self.noise.standard_error_multiple(),
            self.moves * self.noise.median_error_multiple(),
            "which the query alone fixes",
        )
        return said + steady.describe().removeprefix(self.noise.describe())

    def prepare(self) -> PreparedConstant:
        """The sets of public tables that the sensitivity is made of; too many are refused."""
        with bounded_analysis():
            fixed = tuple(FixedBound.of(one) for one in self.summands if one.private)
        return PreparedConstant(self, fixed)


@dataclass(frozen=True)
class FixedBound:
    """The bound |c| L of one term, and the values of public tables that it is made of."""

    summand: Summand
    measured: Residuals
    wanted: tuple[Members, ...]

    @classmethod
    def of(cls, summand: Summand) -> FixedBound:
        """Sums where it needs them, else numbers of results."""
        own = summand.residuals
        measured = own if needs_sums(own.query) else counted(own)
        needed = largest_weight(own.query) > 0
        return cls(summand, measured, compile_recursion(measured).coordinates if needed else ())

    def measure(self, measurements: GroupMeasurements) -> int:
        """The same on all databases with these public tables."""
        values = measurements.values(self.measured, self.wanted, None)
        fixed = constant_sensitivity(self.summand.residuals, values)
        return abs(self.summand.signed.coefficient) * fixed


@dataclass(frozen=True)
class PreparedConstant:
    """The mechanism with the bound of each term."""

    mechanism: ConstantVector
    fixed: tuple[FixedBound, ...]

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> VectorDraw:
        """The true numbers, and the values of public tables."""
        own = self.mechanism
        numbers = true_numbers(own.summands, measurements, domains, groups, own.size)
        sensitivity = Fraction(sum(bound.measure(measurements) for bound in self.fixed))

        def draw(bits: RandomBits) -> tuple[Noisy, ...]:
            moved, coverage = own.moves * sensitivity, own.coverage
            half = 0 if coverage is None else own.noise.half_width(moved, 1 - coverage)
            return tuple(
                around(number + own.noise.sample(moved, bits), half, coverage) for number in numbers
            )

        return draw
