"""Groups in general, where one row may change many: one Lomax noise for the whole vector."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import UsageError
from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.smooth import SLOWEST_STEP
from sqlrs.mechanisms.summand_bounds import BoundsOf, TermBound, bounds_of
from sqlrs.mechanisms.vector_base import (
    GroupMeasurements,
    Summand,
    VectorDraw,
    around,
    error_in_words,
    true_numbers,
)
from sqlrs.noise import ErrorBars, RandomBits
from sqlrs.noise.lomax import Lomax, usual_share
from sqlrs.records import dataclass

# Beyond this share of epsilon for the scale the noise is more than three times the least one.
_LARGEST_SHARE = Fraction(1, 2)


@dataclass(frozen=True)
class GeneralVector:
    """One noise for all groups; ``moves`` times S bounds how far all of them move in all.

    ``bounds`` are those of single rows, unless units own several; then ``protected`` says who is
    protected.
    """

    summands: tuple[Summand, ...]
    moves: int
    noise: Lomax
    bars: ErrorBars | None = None
    bounds: BoundsOf = bounds_of
    protected: str = ""

    @property
    def name(self) -> str:
        """The name of the noise."""
        return self.noise.name

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """That of the noise, and that of the error bars of all groups."""
        return (self.noise.epsilon, *([self.bars.epsilon] if self.bars else []))

    @property
    def coverage(self) -> Fraction | None:
        """That of the error bars of one group."""
        return self.bars.coverage if self.bars else None

    def describe(self) -> str:
        """The noise with its error as a multiple of the sensitivity, and the error bars."""
        said = error_in_words(
            f"lomax noise for {self.noise.size} groups at once",
            self.noise.epsilon,
            self.moves * self.noise.standard_error_multiple(),
            self.moves * self.noise.median_error_multiple(),
            f"in each: one {'unit' if self.protected else 'private row'} may change many groups",
        )
        bars = self.bars.describe() if self.bars else ""
        return ", ".join(filter(None, [said, bars, self.protected]))

    def prepare(self) -> PreparedGeneral:
        """The values that the bounds need; too many are refused."""
        return PreparedGeneral(self, self.bounds(self.summands))


@dataclass(frozen=True)
class PreparedGeneral:
    """The mechanism with the bound of each term."""

    mechanism: GeneralVector
    bounds: tuple[TermBound, ...]

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> VectorDraw:
        """The true numbers, and T_E as far as the bounds depend on it."""
        own, noise = self.mechanism, self.mechanism.noise
        numbers = true_numbers(own.summands, measurements, domains, groups, noise.size)
        parts = [bound.measure(measurements, noise.weights) for bound in self.bounds]

        def draw(bits: RandomBits) -> tuple[Noisy, ...]:
            moved = own.moves * sum((part() for part in parts), Fraction(0))
            noises = noise.sample(moved, bits)
            # One look at the scale serves all groups: each look would cost its price again.
            half = 0 if own.bars is None else own.bars.half_width(moved, bits)
            return tuple(
                around(number + noise, half, own.coverage)
                for number, noise in zip(numbers, noises, strict=True)
            )

        return draw


def vector_law(epsilon: Decimal, size: int, error_bars: Decimal | None) -> Lomax:
    """The law of so many groups, from public numbers alone; too slow weights are refused."""
    # The number of distances that a sensitivity looks at grows as the weights fall more slowly.
    least = 2 * size * SLOWEST_STEP / Fraction(epsilon)
    share = max(usual_share(epsilon, size, error_bars), least)
    if share > _LARGEST_SHARE:
        raise UsageError(
            "epsilon is too small for so many groups: too many distances would have to be tried",
            hint=f"give at least {parse_epsilon(2 * least * Fraction(epsilon)):f}, or ask for "
            "fewer groups",
        )
    return Lomax(epsilon, size, share)


def general_vector(
    summands: tuple[Summand, ...],
    size: int,
    moves: int,
    *,
    epsilon: Decimal,
    error_bars: Decimal | None,
) -> GeneralVector:
    """The mechanism, with one estimate of its scale for the error bars of all groups."""
    noise = vector_law(epsilon, size, error_bars)
    bars = None if error_bars is None else ErrorBars(error_bars, noise)
    return GeneralVector(summands, moves, noise, bars)
