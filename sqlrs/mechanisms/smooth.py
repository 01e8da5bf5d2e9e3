"""Smooth mechanisms: heavy-tailed noise in proportion to a smooth bound of the sensitivity."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Protocol

from sqlrs.answer import Interval
from sqlrs.effort import bounded_analysis
from sqlrs.errors import UsageError
from sqlrs.measuring.measure import Measured
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.work import Folding
from sqlrs.mechanisms.base import Draw, Noisy
from sqlrs.mechanisms.folding import refined_folding
from sqlrs.noise import (
    DEFAULT_SHAPE,
    Cauchy,
    ErrorBars,
    Noise,
    PolyLaplace,
    RandomBits,
    Weights,
    shape_with_error_bars,
)
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.refined import is_quick, reached, released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity

# The number of distances that a sensitivity looks at grows as the weights fall more slowly. Without
# an end to it an analyst could use up the machine after the charge.
SLOWEST_STEP = Fraction(1, 100_000)


class SmoothBound(Protocol):
    """A smooth bound of the sensitivity: which values it needs, and how they fold into it."""

    def wanted(self, residuals: Residuals) -> tuple[Members, ...]:
        """The sets whose T_E it needs; too many are refused."""
        ...

    def folding(self, residuals: Residuals, weights: Weights) -> Folding | None:
        """The same where it is quick and monotone, so that it may be tried on limits; no data."""
        ...

    def fold(self, residuals: Residuals, values: Mapping[Members, int], weights: Weights) -> Bound:
        """The bound, from the values T_E. Private."""
        ...


class Refined:
    """The refined residual sensitivity, or the paper's where that is smaller."""

    def wanted(self, residuals: Residuals) -> tuple[Members, ...]:
        """Every set that the recursion reaches; too many are refused."""
        with bounded_analysis():
            return reached(residuals)

    def folding(self, residuals: Residuals, weights: Weights) -> Folding | None:
        """By numbers below and above it where these are quick, else by itself if that is."""
        folding = refined_folding(residuals, weights)
        if folding is None and is_quick(residuals, weights):
            return Folding.exactly(lambda values: self.fold(residuals, values, weights).value)
        return folding

    def fold(self, residuals: Residuals, values: Mapping[Members, int], weights: Weights) -> Bound:
        """The smaller of both bounds."""
        return released_sensitivity(residuals, values, weights)


class Paper:
    """Residual sensitivity as its authors define it, for comparison with their mechanism."""

    def wanted(self, residuals: Residuals) -> tuple[Members, ...]:
        """Every set whose complement is private; queries with too many are refused alike."""
        with bounded_analysis():
            reached(residuals)
        return residuals.required

    def folding(self, residuals: Residuals, weights: Weights) -> Folding | None:
        """The search over distances is not repeated."""
        return None

    def fold(self, residuals: Residuals, values: Mapping[Members, int], weights: Weights) -> Bound:
        """The paper's bound."""
        return residual_sensitivity(residuals, values, weights)


@dataclass(frozen=True)
class Smooth:
    """Noise, the smooth bound that scales it, and error bars where they are asked for."""

    bound: SmoothBound
    noise: Noise
    bars: ErrorBars | None = None

    @property
    def name(self) -> str:
        """The name of the noise."""
        return self.noise.name

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """That of the noise, and that of the error bars."""
        return (self.noise.epsilon, *([self.bars.epsilon] if self.bars else []))

    @property
    def coverage(self) -> Fraction | None:
        """That of the error bars."""
        return self.bars.coverage if self.bars else None

    def describe(self) -> str:
        """The noise with its error as a multiple of the sensitivity, and the error bars."""
        return ", ".join([self.noise.describe(), *([self.bars.describe()] if self.bars else [])])

    def fitted(self, residuals: Residuals) -> Smooth:
        """Itself: a smooth bound is right for every query."""
        return self

    def prepare(self, residuals: Residuals) -> SmoothPreparation:
        """The sets that the bound needs are found here, and too many of them refused."""
        return SmoothPreparation(self, residuals, self.bound.wanted(residuals))


@dataclass(frozen=True)
class SmoothPreparation:
    """A smooth mechanism for one query."""

    mechanism: Smooth
    residuals: Residuals
    wanted: tuple[Members, ...]

    def measure(self, measurements: Measurements) -> Draw:
        """The count, and T_E as far as the bound depends on it."""
        return partial(self._noisy, self.measured(measurements))

    def measured(self, measurements: Measurements) -> Measured:
        """The same without what is left to do."""
        mechanism = self.mechanism
        folding = mechanism.bound.folding(self.residuals, mechanism.noise.weights)
        return measurements.enough(self.residuals, self.wanted, folding)

    def sensitivity(self, measured: Measured) -> Fraction:
        """The smooth bound of what was measured, folded where it is not settled. Private."""
        if measured.settled is not None:
            return measured.settled
        mechanism = self.mechanism
        return mechanism.bound.fold(self.residuals, measured.values, mechanism.noise.weights).value

    def _noisy(self, measured: Measured, bits: RandomBits) -> Noisy:
        sensitivity = self.sensitivity(measured)
        value = measured.count + self.mechanism.noise.sample(sensitivity, bits)
        bars = self.mechanism.bars
        if bars is None:
            return Noisy(value)
        return Noisy(value, Interval(*bars.interval(value, sensitivity, bits), bars.coverage))


def refined(epsilon: Decimal, shape: int | None, error_bars: Decimal | None) -> Smooth:
    """Polylaplace noise of a shape, which follows from the price of the error bars."""
    usual = DEFAULT_SHAPE
    if error_bars is not None:
        slowest = max(DEFAULT_SHAPE, int(Fraction(epsilon) / SLOWEST_STEP) - 1)
        usual = min(shape_with_error_bars(epsilon, error_bars), slowest)
    return _smooth(Refined(), PolyLaplace(epsilon, usual if shape is None else shape), error_bars)


def paper(epsilon: Decimal, shape: int | None, error_bars: Decimal | None) -> Smooth:
    """The noise of density 1 / (1 + z**4), which has no shape."""
    if shape is not None:
        raise UsageError("the mechanism cauchy has no shape", hint="leave --shape out")
    return _smooth(Paper(), Cauchy(epsilon), error_bars)


def _smooth(bound: SmoothBound, noise: Noise, error_bars: Decimal | None) -> Smooth:
    if 1 / noise.weights.decay - 1 < SLOWEST_STEP:
        raise UsageError(
            "epsilon is too small for this noise: too many distances would have to be tried",
            hint=f"give at least 0.0001, or {SLOWEST_STEP} times the shape",
        )
    return Smooth(bound, noise, None if error_bars is None else ErrorBars(error_bars, noise))
