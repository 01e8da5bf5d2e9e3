"""The usual mechanism: the least noise that a query allows, chosen from the query alone."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sqlrs.effort import bounded_analysis
from sqlrs.mechanisms.base import Mechanism, Preparation
from sqlrs.mechanisms.smooth import Smooth, refined
from sqlrs.mechanisms.steady import Steady, steady
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.constant import is_constant


@dataclass(frozen=True)
class Fitting:
    """Laplace noise where the query fixes its sensitivity, else that of a smooth bound."""

    steady: Steady
    smooth: Smooth

    @property
    def name(self) -> str:
        """That of the general case."""
        return self.smooth.name

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """Those of the general case, which are the higher ones."""
        return self.smooth.prices

    @property
    def coverage(self) -> Fraction | None:
        """That of the error bars."""
        return self.smooth.coverage

    def describe(self) -> str:
        """That of the general case."""
        return self.smooth.describe()

    def fitted(self, residuals: Residuals) -> Mechanism:
        """The one of the two that answers this query."""
        with bounded_analysis():
            return self.steady if is_constant(residuals) else self.smooth

    def prepare(self, residuals: Residuals) -> Preparation:
        """The one that fits, for this query."""
        return self.fitted(residuals).prepare(residuals)


def fitting(epsilon: Decimal, shape: int | None, error_bars: Decimal | None) -> Mechanism:
    """Both kinds at the same price; who asks for a shape asks for the noise that has one."""
    smooth = refined(epsilon, shape, error_bars)
    return Fitting(steady(epsilon, error_bars), smooth) if shape is None else smooth
