"""Noise no smaller than an error that is wished: what it costs follows from a public scale.

Where the query fixes its sensitivity the price follows from it. Elsewhere an estimate of the scale
is released first, at a price of its own, and the noise is chosen by it:
docs/proofs/wished_error.md.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from sqlrs.answer import Interval
from sqlrs.epsilon import parse_epsilon
from sqlrs.measuring.measure import Measured
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.smooth import Refined, Smooth, SmoothPreparation
from sqlrs.noise import Laplace, PolyLaplace, RandomBits
from sqlrs.noise.laplace import tail_ceiling
from sqlrs.noise.published_scale import SHAPES, PublishedScale
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residuals

# Less is charged for no answer: the noises that are tried beside this one need as much.
_LEAST = Decimal("0.0001")
_DIGITS = 3
_FIRST = 100
_MANTISSAS = 900


@dataclass(frozen=True)
class WishedSmooth:
    """Polylaplace noise of a price that the published scale decides."""

    scale: PublishedScale

    def prepare(self, residuals: Residuals) -> PreparedWish:
        """The sets that the bound needs are found here, and too many of them refused."""
        # All shapes have the same weights, so the bound is the same for all of them.
        smooth = Smooth(Refined(), self.scale.of_number(SHAPES[0]))
        return PreparedWish(self.scale, smooth.prepare(residuals))


@dataclass(frozen=True)
class PreparedWish:
    """The mechanism for one query."""

    scale: PublishedScale
    smooth: SmoothPreparation

    def measure(self, measurements: Measurements) -> LookedAt:
        """The count, and T_E as far as the bound depends on it."""
        return LookedAt(self.scale, self.smooth, self.smooth.measured(measurements))


@dataclass(frozen=True, repr=False)
class LookedAt:
    """Measured values, which are private. Each of the two releases must be charged before it."""

    scale: PublishedScale
    smooth: SmoothPreparation
    measured: Measured

    @cached_property
    def _sensitivity(self) -> Fraction:
        return self.smooth.sensitivity(self.measured)

    def publish(self, bits: RandomBits) -> int:
        """The estimate of the scale, at the price of ``scale.epsilon``."""
        return self.scale.publish(self._sensitivity, bits)

    def noisy(self, index: int, shape: int, bits: RandomBits) -> Noisy:
        """The count with noise of this shape, at the price of its law, and its interval."""
        value = self.measured.count + self.scale.of_number(shape).sample(self._sensitivity, bits)
        half = self.scale.half_width(index, shape)
        return Noisy(value, Interval(value - half, value + half, self.scale.coverage))

    def __repr__(self) -> str:
        return "LookedAt(private)"


def describe_chosen(law: PolyLaplace, index: int) -> str:
    """One line for the ledger, made of what is public once the scale is."""
    return f"{law.describe()}, interval by the published scale {index}"


def least_epsilon(
    sensitivity: Fraction, error: Fraction, miss: Fraction, most: Decimal
) -> Decimal | None:
    """The least epsilon of three digits at which Laplace noise strays by at most the error.

    The sensitivity is public, and so is the result; None where ``most`` is not enough.
    """

    def enough(epsilon: Decimal) -> bool:
        scale = Laplace(epsilon).scale(sensitivity)
        return not scale or tail_ceiling(scale, int(error)) <= miss

    return least_where(enough, most)


def least_where(enough: Callable[[Decimal], bool], most: Decimal) -> Decimal | None:
    """The least price of three digits that is enough, where all above it are; None: not ``most``.

    What is enough must follow from public numbers.
    """
    if not enough(most):
        return None
    if most <= _LEAST:
        return most
    low, high = -1, _place(most)
    while high - low > 1:
        middle = (low + high) // 2
        if enough(_on_grid(middle)):
            high = middle
        else:
            low = middle
    return parse_epsilon(min(most, _on_grid(high)))


def _on_grid(place: int) -> Decimal:
    """The numbers of three digits from the least one on, in order."""
    power, mantissa = divmod(place, _MANTISSAS)
    return (_FIRST + mantissa) * _LEAST.scaleb(power - _DIGITS + 1)


def _place(epsilon: Decimal) -> int:
    """The place of the first number on the grid that is not below."""
    power = epsilon.adjusted() - _LEAST.adjusted()
    digits = epsilon.scaleb(_DIGITS - 1 - epsilon.adjusted())
    mantissa = int(digits) - _FIRST
    return power * _MANTISSAS + mantissa + (digits != int(digits))
