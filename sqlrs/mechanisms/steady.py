"""The mechanism of queries that fix their own sensitivity: Laplace noise, and free error bars."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial

from sqlrs.answer import Interval
from sqlrs.effort import bounded_analysis
from sqlrs.measuring.measure import Measured
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.base import Draw, Noisy
from sqlrs.noise import Laplace, RandomBits
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.constant import constant_sensitivity
from sqlrs.sensitivity.refined import reached


@dataclass(frozen=True)
class Steady:
    """Laplace noise in proportion to a public sensitivity; its width is public too."""

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
        bars = "" if self.coverage is None else f", error bars of coverage {float(self.coverage):g}"
        return self.noise.describe() + (f"{bars}, free of charge" if bars else "")

    def fitted(self, residuals: Residuals) -> Steady:
        """Itself."""
        return self

    def prepare(self, residuals: Residuals) -> PreparedSteady:
        """The sets of public tables that the sensitivity is made of; too many are refused."""
        with bounded_analysis():
            return PreparedSteady(self, residuals, reached(residuals))


@dataclass(frozen=True)
class PreparedSteady:
    """The mechanism for one query."""

    mechanism: Steady
    residuals: Residuals
    wanted: tuple[Members, ...]

    def measure(self, measurements: Measurements) -> Draw:
        """The count, and the values of public tables."""
        return partial(self._noisy, measurements.enough(self.residuals, self.wanted, None))

    def _noisy(self, measured: Measured, bits: RandomBits) -> Noisy:
        noise, coverage = self.mechanism.noise, self.mechanism.coverage
        sensitivity = Fraction(constant_sensitivity(self.residuals, measured.values))
        value = measured.count + noise.sample(sensitivity, bits)
        if coverage is None:
            return Noisy(value)
        half = noise.half_width(sensitivity, 1 - coverage)
        return Noisy(value, Interval(value - half, value + half, coverage))


def steady(epsilon: Decimal, error_bars: Decimal | None) -> Steady:
    """Laplace noise, with an interval where error bars are asked for."""
    return Steady(Laplace(epsilon), None if error_bars is None else DEFAULT_COVERAGE)
