"""The smooth bound of one term of a measure: which values it needs, and how they fold into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from math import prod
from typing import Protocol

from sqlrs.effort import bounded_analysis
from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.measuring.groups import can_measure_by_group
from sqlrs.measuring.work import Folding, Values
from sqlrs.mechanisms.folding import refined_folding
from sqlrs.mechanisms.vector_base import GroupMeasurements, Summand
from sqlrs.noise import Weights
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.parallel import divides
from sqlrs.sensitivity.recursion import Recursion
from sqlrs.sensitivity.refined import MAX_WORK, choose_method
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weighted import (
    compile_sums,
    counted,
    needs_sums,
    sum_is_quick,
    sum_reached,
    sum_sensitivity,
)

Sensitivity = Callable[[], Fraction]
Sensitivities = Callable[[], tuple[Fraction, ...]]
"""Folded when called: that needs no snapshot any more."""


class TermBound(Protocol):
    """The smooth bound of one term of a measure."""

    def measure(self, measurements: GroupMeasurements, weights: Weights) -> Sensitivity:
        """Measure what it needs."""
        ...


BoundsOf = Callable[[Sequence[Summand]], tuple[TermBound, ...]]
"""The bound of each term that a private row takes part in; too much work is refused."""


@dataclass(frozen=True)
class SummandBound:
    """The bound |c| S of one term, from numbers of results and, where it needs them, from sums."""

    summand: Summand
    wanted: tuple[Members, ...]

    @classmethod
    def of(cls, summand: Summand) -> SummandBound:
        """The sets that it needs are found here, and too many of them refused."""
        with bounded_analysis():
            return cls(summand, sum_reached(summand.residuals))

    @property
    def measured(self) -> tuple[Residuals, ...]:
        """Whose values are measured: of the count and, where it needs them, of the sum."""
        residuals = self.summand.residuals
        return (counted(residuals), *([residuals] if needs_sums(residuals.query) else []))

    def measure(self, measurements: GroupMeasurements, weights: Weights) -> Sensitivity:
        """Of the whole query: no vector of its groups moves farther in all."""
        *before, last = self.measured
        known = [measurements.values(residuals, self.wanted, None) for residuals in before]
        fold = partial(self._fold, weights, *known)
        folding = None if before else refined_folding(last, weights)
        if folding is None and sum_is_quick(self.summand.residuals, weights):
            folding = Folding.exactly(fold)
        return cache(partial(fold, measurements.values(last, self.wanted, folding)))

    def measure_by_group(
        self,
        measurements: GroupMeasurements,
        weights: Weights,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> Sensitivities:
        """Of the private rows of each group, as if there were no others."""
        known = [self._by_group(r, measurements, domains, groups) for r in self.measured]

        def fold() -> tuple[Fraction, ...]:
            # Groups are many and small: most of them have the values of another one.
            folded: dict[tuple[int, ...], Fraction] = {}
            bounds = []
            for values in zip(*known, strict=True):
                seen = tuple(one[members] for one in values for members in self.wanted)
                if seen not in folded:
                    folded[seen] = self._fold(weights, *values)
                bounds.append(folded[seen])
            return tuple(bounds)

        return cache(fold)

    def has_groups(self, weights: Weights, times: int) -> bool:
        """Whether all values of each group can be measured, and folded so many times; no data."""
        keys = self.summand.signed.keys
        with bounded_analysis():
            return all(
                can_measure_by_group(residuals, parts, keys)
                and all(divides(residuals.query, keys, part) for part in parts)
                for residuals in self.measured
                for parts in [private_parts(residuals, self.wanted)]
            ) and all(_is_quick(one, weights, times) for one in self._recursions())

    def _recursions(self) -> Iterable[Recursion]:
        yield compile_recursion(counted(self.summand.residuals))
        if needs_sums(self.summand.residuals.query):
            yield compile_sums(self.summand.residuals)

    def _by_group(
        self,
        residuals: Residuals,
        measurements: GroupMeasurements,
        domains: Sequence[KeyDomain],
        groups: Sequence[Ordinals],
    ) -> list[Values]:
        """T_E on the private rows of each group and all public ones: docs/proofs/vector.md.

        Parts of public tables alone are measured over all their rows, not over those of a group:
        one such value may stand for others that are alike without the group.
        """
        private = private_parts(residuals, self.wanted)
        public = public_parts(residuals, self.wanted)
        everywhere = measurements.values(residuals, public, None)
        found = measurements.values_by_group(residuals, private, self.summand.signed.keys, domains)
        return [
            residuals.assemble(self.wanted, _parts(residuals, {**everywhere, **found[group]}))
            for group in groups
        ]

    def _fold(self, weights: Weights, counts: Values, sums: Values | None = None) -> Fraction:
        bound = sum_sensitivity(self.summand.residuals, counts, sums or {}, weights)
        return abs(self.summand.signed.coefficient) * bound.value


def private_parts(residuals: Residuals, wanted: Iterable[Members]) -> tuple[Members, ...]:
    """The parts that only data can tell, with a private row in them."""
    private = residuals.query.private
    return tuple(p.members for p in residuals.undecided(wanted) if p.members & private)


def public_parts(residuals: Residuals, wanted: Iterable[Members]) -> tuple[Members, ...]:
    """The parts that only data can tell, of public tables alone."""
    private = residuals.query.private
    return tuple(p.members for p in residuals.undecided(wanted) if not p.members & private)


def bounds_of(summands: Sequence[Summand]) -> tuple[SummandBound, ...]:
    """The bound of each term that a private row takes part in; too much work is refused."""
    return tuple(SummandBound.of(summand) for summand in summands if summand.private)


def _parts(residuals: Residuals, values: Mapping[Members, int]) -> dict[Members, int]:
    """The parts' own values: T of a part alone also holds the most that all else can weigh."""
    query = residuals.query
    found = {}
    for members, value in values.items():
        atoms = (query.atoms[i] for i in query.weighted - members)
        found[members] = value // prod(a.weight.bound for a in atoms if a.weight is not None)
    return found


def _is_quick(recursion: Recursion, weights: Weights, times: int) -> bool:
    method = choose_method(recursion, weights)
    return method is not None and method.lattice and method.work * times <= MAX_WORK
