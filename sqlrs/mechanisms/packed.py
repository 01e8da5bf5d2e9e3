"""One number whose results belong to several units each: a packing, cut at a private threshold.

Privacy: docs/proofs/packing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import ClassVar

from sqlrs.measures import KeyDomain, Measure, Ordinals, OwnedResults
from sqlrs.measuring.owned_results import owner_variables
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.cut_at_threshold import CutAtThreshold, CutDraw, nearest
from sqlrs.mechanisms.packing_solver import (
    DEFAULT_PACKING_SECONDS,
    CertifiedSums,
    load_highs,
)
from sqlrs.mechanisms.vector_base import (
    GroupMeasurements,
    Summand,
    around,
    true_numbers,
)
from sqlrs.noise import Laplace, RandomBits
from sqlrs.noise.falling_threshold import Penalty, choose_falling
from sqlrs.records import dataclass
from sqlrs.sensitivity.clipping import MOST_THRESHOLD, PARTS
from sqlrs.sensitivity.packing_scores import GAP, doublings, gamma, moved_parts, scores

Certified = Callable[[int], tuple[Fraction, Fraction]]
"""The certified bound of the number that is cut at a threshold, and its slope."""

PACKED_CHOICE_SHARE = Decimal("0.55")
"""The part of epsilon that chooses the threshold; the rest is for the noise.

Nearly twice that of results with one owner: scores move three times as much, so that the choice is
what most of the error comes from. Measured on 14 cells of six graphs, with the power of the prior:
their median errors are nearly the least, and so are the root mean squares with that power.
"""


@dataclass(frozen=True)
class PackedNumber(CutAtThreshold):
    """One private term of results with several owners; ``public`` ones are added outside the cut.

    ``largest``: no threshold is larger. ``most``: more different sets of owners end the release,
    and so do ``seconds`` of solving. ``worth``: what one of the measure's whole numbers is worth.
    """

    summand: Summand
    public: tuple[Summand, ...]
    epsilon: Decimal
    strict: bool
    largest: int
    most: int
    seconds: float = DEFAULT_PACKING_SECONDS
    coverage: Fraction | None = None
    worth: Fraction = Fraction(1)
    name = "clipped"
    choice_share: ClassVar[Decimal] = PACKED_CHOICE_SHARE

    def __post_init__(self) -> None:
        if not self.summand.private or any(one.private for one in self.public):
            raise ValueError("what has private rows must not escape the cut")
        if self.summand.signed.coefficient < 0:
            raise ValueError("a packing is made of numbers that are not below 0")
        owner_variables(self.summand.signed)
        self.split  # noqa: B018 - an epsilon that is too small is refused here

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """The thresholds: powers of 2."""
        return doublings(self.largest)

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The public grid."""
        return self.grid

    @property
    def moved(self) -> Fraction:
        """How many thresholds a neighbour may move the number."""
        return 1 + GAP

    def describe(self) -> str:
        """The thresholds, the split of epsilon, the error as a multiple of the threshold."""
        return self.said(self.said_of_choice(), "")

    def said_of_choice(self) -> str:
        """The thresholds and what the choice costs."""
        largest = self.grid[-1] * self.worth
        cut = f"each unit contributes at most {largest}"
        if len(self.grid) > 1:
            cut = (
                f"each unit cut to one of {len(self.grid)} thresholds up to {float(largest):g}, "
                f"chosen with epsilon {self.choice_epsilon}"
            )
        return f"{cut}, where several units share a result by a packing"

    def prepare(self) -> PackedNumber:
        """Itself; a missing solver is refused here."""
        load_highs()
        return self

    def measure(
        self,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> CutDraw:
        """The results by their owners; what is left to do needs no database."""
        (public,) = true_numbers(self.public, measurements, domains, groups, 1)
        signed = self.summand.signed
        found = measurements.owned_results(signed, self.summand.residuals, self.most)
        if signed.coefficient != 1:
            weights = [signed.coefficient * weight for weight in found.weights]
            found = OwnedResults(found.owners, weights)
        sums = CertifiedSums(found, self.seconds)

        def noisy(place: int, noise: Laplace, bits: RandomBits) -> tuple[Noisy, ...]:
            return (self.cut(sums.at, place, public, noise, bits),)

        return CutDraw(lambda bits: self._chosen(sums.at, bits), noisy, self.noise)

    def released(self, certified: Certified, public: int, bits: RandomBits) -> Noisy:
        """Choose a threshold, cut and add noise; of each threshold the bound and its slope."""
        return self.cut(certified, self._chosen(certified, bits), public, self.noise, bits)

    def cut(
        self, certified: Certified, place: int, public: int, noise: Laplace, bits: RandomBits
    ) -> Noisy:
        """The number that is cut at this threshold, with noise."""
        threshold = self.grid[place]
        parts = ceil(PARTS * certified(threshold)[0])
        noisy = parts + noise.sample(moved_parts(threshold), bits)
        value = nearest(noisy, PARTS) + public
        miss = None if self.coverage is None else 1 - self.coverage
        half = 0 if miss is None else self.half_width(place, noise, miss)
        clipping = self.clipping(place, noise)
        return Noisy(value, around(value, half, self.coverage).error_bars, clipping)

    def _chosen(self, certified: Certified, bits: RandomBits) -> int:
        if len(self.grid) == 1:
            return 0
        return choose_falling(self.grid, self._penalties(certified), bits)

    def _penalties(self, certified: Certified) -> Iterator[Penalty]:
        times = gamma(Fraction(self.choice_epsilon), strict=self.strict)
        for one in scores(self.grid, certified):
            yield Penalty(times * one.own, times * one.below)

    def half_width(self, place: int, noise: Laplace, miss: Fraction) -> int:
        """The width of the noise, and what the bound and rounding add."""
        threshold = self.grid[place]
        half = noise.half_width(moved_parts(threshold), miss)
        # The bound lies above the number after the cut by a part of the threshold at most, and
        # rounding to whole numbers moves a value by half of one.
        return ceil(Fraction(half + 1, PARTS) + GAP * threshold) + 1


def packed_number(
    measure: Measure,
    summands: Sequence[Summand],
    *,
    grouped: bool,
    epsilon: Decimal,
    strict: bool,
    coverage: Fraction | None,
    max_contribution: int,
    max_owned_results: int,
    packing_seconds: float,
) -> PackedNumber:
    """The mechanism of a measure some of whose results have several owners.

    The compiler refuses groups of such results, and sums that take some away.
    """
    private = [one for one in summands if one.private]
    if grouped or len(private) != 1 or private[0].signed.coefficient < 0:
        raise ValueError("results of several owners are one sum without groups")
    return PackedNumber(
        private[0],
        tuple(one for one in summands if not one.private),
        epsilon,
        strict,
        max(1, min(int(max_contribution / measure.unit), MOST_THRESHOLD)),
        max_owned_results,
        packing_seconds,
        coverage,
        measure.unit,
    )
