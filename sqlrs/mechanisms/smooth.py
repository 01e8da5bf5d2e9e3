"""Mechanisms of smooth sensitivities: the refined bound with polylaplace noise, and the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sqlrs.effort import bounded_analysis
from sqlrs.errors import UsageError
from sqlrs.noise import (
    DEFAULT_SHAPE,
    DEFAULT_SHAPE_WITH_ERROR_BARS,
    Cauchy,
    Noise,
    PolyLaplace,
)
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.refined import is_quick, reached, released_sensitivity
from sqlrs.sensitivity.residual import residual_sensitivity


@dataclass(frozen=True)
class Refined:
    """The refined residual sensitivity, or the paper's where that is smaller."""

    noise: Noise

    def wanted(self, residuals: Residuals) -> tuple[Members, ...]:
        """Every set that the recursion reaches; too many are refused."""
        with bounded_analysis():
            return reached(residuals)

    def is_quick(self, residuals: Residuals) -> bool:
        """From the query and the weights alone."""
        return is_quick(residuals, self.noise.weights)

    def sensitivity(self, residuals: Residuals, values: Mapping[Members, int]) -> Bound:
        """The smaller of both bounds."""
        return released_sensitivity(residuals, values, self.noise.weights)


@dataclass(frozen=True)
class Paper:
    """Residual sensitivity as its authors define it, for comparison with their mechanism."""

    noise: Noise

    def wanted(self, residuals: Residuals) -> tuple[Members, ...]:
        """Every set whose complement is private; queries with too many are refused alike."""
        with bounded_analysis():
            reached(residuals)
        return residuals.required

    def is_quick(self, residuals: Residuals) -> bool:
        """The search over distances is not repeated."""
        return False

    def sensitivity(self, residuals: Residuals, values: Mapping[Members, int]) -> Bound:
        """The paper's bound."""
        return residual_sensitivity(residuals, values, self.noise.weights)


def refined(epsilon: Decimal, shape: int | None, with_error_bars: bool) -> Refined:
    """Polylaplace noise of a shape, which follows from whether error bars are wanted."""
    usual = DEFAULT_SHAPE_WITH_ERROR_BARS if with_error_bars else DEFAULT_SHAPE
    return Refined(PolyLaplace(epsilon, usual if shape is None else shape))


def paper(epsilon: Decimal, shape: int | None, with_error_bars: bool) -> Paper:
    """The noise of density 1 / (1 + z**4), which has no shape."""
    if shape is not None:
        raise UsageError("the mechanism cauchy has no shape", hint="leave --shape out")
    return Paper(Cauchy(epsilon))
