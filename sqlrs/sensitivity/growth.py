"""How far one step can move a count, as a polynomial in the distances already gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import mul

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Growth:
    """Σ_{∅≠F⊆D_r} T̂_{[n]−F, s} of one table r as a function of s, one distance a private table.

    A set O of private atoms leaves the query in as many ways as it splits into F ∪ E' with F ≠ ∅ in
    D_r, so with c_t = |O ∩ D_t| it adds T_{[n]−O} · ((1+s_r)^c_r − s_r^c_r) · Π_{t≠r} s_t^c_t. Only
    the counts matter: ``coefficients`` sums T over all O with the same counts.
    """

    changed: int
    coefficients: Mapping[Counts, int]

    @cached_property
    def tables(self) -> int:
        """m: the number of private tables."""
        return len(next(iter(self.coefficients)))

    @cached_property
    def degrees(self) -> Counts:
        """The degree in each distance."""
        return tuple(power - (t == self.changed) for t, power in enumerate(self._powers))

    def __call__(self, distances: Sequence[int]) -> int:
        """The value at one vector of distances."""
        return self.at_all([(s,) for s in distances])[0]

    def at_all(self, choices: Sequence[Sequence[int]]) -> list[int]:
        """The values at all vectors of ``itertools.product(*choices)``, in its order."""
        # One coordinate at a time, so that vectors with a common beginning share its work.
        partial = [self._dense]
        for table, distances in enumerate(choices):
            factors = [self._factors(table, distance) for distance in distances]
            size = len(partial[0]) // (self._powers[table] + 1)
            sliced = (
                list(zip(*(p[i : i + size] for i in range(0, len(p), size)), strict=True))
                for p in partial
            )
            partial = [
                [sum(map(mul, chosen, column)) for column in columns]
                for columns in sliced
                for chosen in factors
            ]
        return [value for (value,) in partial]

    def _factors(self, table: int, distance: int) -> list[int]:
        powers = [distance**i for i in range(self._powers[table] + 1)]
        if table != self.changed:
            return powers
        return [(1 + distance) ** i - power for i, power in enumerate(powers)]

    @cached_property
    def _powers(self) -> Counts:
        return tuple(max(counts[t] for counts in self.coefficients) for t in range(self.tables))

    @cached_property
    def _dense(self) -> list[int]:
        grid = product(*(range(power + 1) for power in self._powers))
        return [self.coefficients.get(counts, 0) for counts in grid]


@dataclass(frozen=True)
class Polynomial:
    """A polynomial in one variable; ``coefficients[i]`` belongs to the power i."""

    coefficients: tuple[int, ...]

    def __call__(self, k: int) -> int:
        """The value at k."""
        value = 0
        for coefficient in reversed(self.coefficients):
            value = value * k + coefficient
        return value
