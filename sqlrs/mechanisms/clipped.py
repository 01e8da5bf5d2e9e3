"""Counts and sums in which each unit's part is cut to a threshold that is chosen privately.

Each result belongs to one unit. Privacy: docs/proofs/clipping.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from sqlrs.catalog import Family
from sqlrs.measures import Contributions, KeyDomain, Measure, Ordinals, PerUnit
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.cut_at_threshold import CutAtThreshold, CutDraw, nearest
from sqlrs.mechanisms.vector_base import (
    GroupMeasurements,
    Summand,
    around,
    true_numbers,
)
from sqlrs.noise import Laplace, RandomBits
from sqlrs.noise.threshold import choose_threshold
from sqlrs.records import dataclass
from sqlrs.sensitivity.clipping import (
    MOST_THRESHOLD,
    clipped_number,
    clipped_parts,
    cut_units,
    fine_grid,
    parts_of,
)
from sqlrs.sensitivity.unit_size import measure_size_bound

CHOICE_SHARE = Decimal("0.3")
"""The part of epsilon that chooses the threshold; the rest is for the noise."""

_SPLIT = frozenset({Family.FLOAT, Family.OPAQUE})


@dataclass(frozen=True)
class ClippedVector(CutAtThreshold):
    """One measure over ``size`` groups, or one number: ``source`` says what each unit contributes.

    The private terms of a sum have one owner each; ``public`` ones are added outside of the cut.
    ``moves``: how many thresholds all numbers may move in all where one unit is another.
    ``worth``: what one of the measure's whole numbers is worth. ``protected``: in a word, who is.
    ``most``: what one of them contributes at most by the query alone.
    ``opposed``: a neighbour may cut one unit more and another one less, at different thresholds.
    """

    source: tuple[Summand, ...] | PerUnit
    public: tuple[Summand, ...]
    size: int
    moves: int
    epsilon: Decimal
    grid: tuple[int, ...]
    coverage: Fraction | None = None
    worth: Fraction = Fraction(1)
    protected: str = "unit"
    most: int | None = None
    opposed: bool = False
    name = "clipped"
    choice_share: ClassVar[Decimal] = CHOICE_SHARE

    def __post_init__(self) -> None:
        if not isinstance(self.source, PerUnit) and any(
            not one.private or len(set(one.signed.owners)) != 1 for one in self.source
        ):
            raise ValueError("only what has one owner can be cut unit by unit")
        if not isinstance(self.source, PerUnit) and any(
            owner.type.family in _SPLIT for one in self.source for owner in one.signed.owners
        ):
            raise ValueError("an engine may group equal ids apart, and take one unit for two")
        if any(one.private for one in self.public):
            raise ValueError("what has private rows must not escape the cut")
        if self.size < 1 or self.moves not in (1, 2):
            raise ValueError("a clipped measure has a number, which moves once or twice")
        if list(self.grid) != sorted(set(self.grid)) or not self.grid or self.grid[0] < 1:
            raise ValueError("a grid is made of whole numbers from 1 on, in order")
        self.split  # noqa: B018 - an epsilon that is too small is refused here

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The public grid."""
        return self.grid

    @property
    def moved(self) -> Fraction:
        """How many thresholds a neighbour may move all numbers in all."""
        return Fraction(self.moves)

    def cuts(self, place: int) -> bool:
        """Whether a unit can contribute more than this threshold, by the query alone."""
        return self.most is None or self.grid[place] < self.most

    def describe(self) -> str:
        """The thresholds, the split of epsilon, the error as a multiple of the threshold."""
        return self.said(self.said_of_choice(), self._each_group)

    @property
    def _each_group(self) -> str:
        return f" for each of {self.size} groups" if self.size > 1 else ""

    def said_of_choice(self) -> str:
        """The thresholds and what the choice costs."""
        least, most = (
            _shown(threshold * self.worth) for threshold in (self.grid[0], self.grid[-1])
        )
        if len(self.grid) == 1:
            return f"each {self.protected} contributes at most {most}"
        return (
            f"each {self.protected} cut to one of {len(self.grid)} thresholds from {least} to "
            f"{most}, chosen with epsilon {self.choice_epsilon}"
        )

    def prepare(self) -> ClippedVector:
        """Itself: there is one statement to run."""
        return self

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> CutDraw:
        """What the units contribute, and the true numbers of public rows."""
        fixed = true_numbers(self.public, measurements, domains, groups, self.size)
        source = self.source
        asked = source if isinstance(source, PerUnit) else [(s.signed, s.residuals) for s in source]
        found = measurements.contributions(asked, domains, self.grid)
        if found.grid != self.grid or not found.totals.keys() <= set(groups):
            raise ValueError("these are the contributions of another measure")

        def noisy(place: int, noise: Laplace, bits: RandomBits) -> tuple[Noisy, ...]:
            numbers = self._numbers(found, place, groups)
            parts, sensitivity = self._parts, self._sensitivity(place)
            miss = None if self.coverage is None else 1 - self.coverage
            half = 0 if miss is None else self.half_width(place, noise, miss)
            cut = self.clipping(place, noise)
            released = []
            for number, public in zip(numbers, fixed, strict=True):
                value = nearest(number + noise.sample(sensitivity, bits), parts) + public
                bars = around(value, half, self.coverage).error_bars
                released.append(Noisy(value, bars, cut))
            return tuple(released)

        return CutDraw(lambda bits: self._chosen(found, bits), noisy, self.noise)

    def _chosen(self, found: Contributions, bits: RandomBits) -> int:
        if len(self.grid) == 1:
            return 0
        # Weights that move against each other count twice: in the weight and in the sum of all.
        gamma = Fraction(self.choice_epsilon) / (2 if self.opposed else 1)
        cut = cut_units(found)
        # Most thresholds cut as many units as the one before: nobody.
        penalties = {number: gamma * number for number in set(cut)}
        return choose_threshold(self.grid, [penalties[number] for number in cut], bits)

    @property
    def _parts(self) -> int:
        """How many parts a whole number has in which the cut is exact."""
        return 1 if self.size == 1 else parts_of(self.grid)

    def _sensitivity(self, place: int) -> Fraction:
        """How far all numbers after the cut move in all, in parts."""
        return Fraction(self.moves * self._parts * self.grid[place])

    def _numbers(
        self, found: Contributions, place: int, groups: Sequence[Ordinals]
    ) -> tuple[int, ...]:
        """The numbers after the cut, in parts."""
        if self.size == 1:
            return (clipped_number(found, place),)
        return clipped_parts(found, place, groups)

    def half_width(self, place: int, noise: Laplace, miss: Fraction) -> int:
        """The width of the noise, and what rounding adds."""
        half, parts = noise.half_width(self._sensitivity(place), miss), self._parts
        # Rounding to whole numbers moves a value by half of one at most.
        return half if parts == 1 else -(-half // parts) + 1


def clipped_vector(
    measure: Measure,
    summands: Sequence[Summand],
    size: int,
    *,
    epsilon: Decimal,
    strict: bool,
    coverage: Fraction | None,
    max_contribution: int,
) -> ClippedVector:
    """The mechanism of a measure each of whose results has one owner."""
    private = tuple(one for one in summands if one.private)
    source: tuple[Summand, ...] | PerUnit = private
    if measure.per_unit is not None:
        source = measure.per_unit
        signed, most = source.signed, source.most
    else:
        signed = len({one.signed.coefficient > 0 for one in private}) > 1
        most = measure_size_bound(measure)
    # Both databases contain the one without either unit: a number that no unit lowers lies above
    # its own there, by the threshold at most. Other numbers may fall by one unit and rise by one.
    moves = 2 if strict and (signed or size > 1) else 1
    limit = min(int(max_contribution / measure.unit), MOST_THRESHOLD)
    if most is not None:
        limit = min(limit, most)
    public = tuple(one for one in summands if not one.private)
    grid = fine_grid(max(1, limit))
    return ClippedVector(
        source, public, size, moves, epsilon, grid, coverage, measure.unit, most=most
    )


def _shown(value: Fraction) -> str:
    return f"{value.numerator}" if value.denominator == 1 else f"{float(value):g}"
