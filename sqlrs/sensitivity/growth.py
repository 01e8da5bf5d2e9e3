"""Polynomials in the distances already gone, without negative coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from operator import mul, sub

from sqlrs.records import dataclass

Powers = tuple[int, ...]


@dataclass(frozen=True)
class Growth:
    """How far one step can move the count: ``coefficients[c]`` belongs to Π_t s_t^c_t."""

    coefficients: Mapping[Powers, int]

    @cached_property
    def degrees(self) -> Powers:
        """The degree in each distance."""
        return tuple(map(max, zip(*self.coefficients, strict=True)))

    def __call__(self, distances: Sequence[int]) -> int:
        """The value at one vector of distances."""
        return self.at_all([(s,) for s in distances])[0]

    def at_all(self, choices: Sequence[Sequence[int]]) -> list[int]:
        """The values at all vectors of ``itertools.product(*choices)``, in its order."""
        # One coordinate at a time, so that vectors with a common beginning share its work.
        partial = [self._dense]
        for degree, distances in zip(self.degrees, choices, strict=True):
            factors = [[distance**i for i in range(degree + 1)] for distance in distances]
            size = len(partial[0]) // (degree + 1)
            sliced = (
                list(zip(*(p[i : i + size] for i in range(0, len(p), size)), strict=True))
                for p in partial
            )
            partial = [
                [sum(map(mul, powers, column)) for column in columns]
                for columns in sliced
                for powers in factors
            ]
        return [value for (value,) in partial]

    @cached_property
    def in_binomials(self) -> list[int]:
        """The coefficients of Π_t binomial(s_t, c_t), the last distance fastest: differences."""
        if max(self.degrees, default=0) <= 1:
            # Of 0 and 1, powers and binomials are the same.
            return self._dense
        found = self.at_all([range(degree + 1) for degree in self.degrees])
        stride = len(found)
        for degree in self.degrees:
            row = stride // (degree + 1)
            for start in range(0, len(found), stride):
                for j in range(1, degree + 1):
                    for i in range(start + degree * row, start + (j - 1) * row, -row):
                        found[i : i + row] = map(sub, found[i : i + row], found[i - row : i])
            stride = row
        return found

    @cached_property
    def _dense(self) -> list[int]:
        grid = product(*(range(degree + 1) for degree in self.degrees))
        return [self.coefficients.get(powers, 0) for powers in grid]
