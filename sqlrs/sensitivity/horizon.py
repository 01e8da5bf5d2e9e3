"""The greatest weighted value of a polynomial over all distances from a given one on, exactly.

P is a maximum of polynomials without negative coefficients. Behind the turning point of a direction
w[|u|] · P(u) only falls, so a box of distances is enough. docs/proofs/refined.md, "Where the search
ends"; distances count units: docs/proofs/rows_per_unit.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import comb, lcm, prod
from operator import add, mul

from sqlrs.sensitivity.ceiling import Distances, Polynomial, turning_point
from sqlrs.sensitivity.weights import Weights

# A direction that is fixed behind its turning point, or None where all of it is looked at.
_Fixed = tuple[int | None, ...]
_FEW_VECTORS = 20_000


class Horizon:
    """max over u ≥ s of w[|u|] · P(u), for all s of a box at once, as far as it is asked for."""

    def __init__(
        self,
        polynomials: Sequence[Polynomial],
        places: int,
        weights: Weights,
        units: tuple[int, ...] | None = None,
    ) -> None:
        every = [powers for polynomial in polynomials for powers in polynomial]
        self.degrees = tuple(max((c[g] for c in every), default=0) for g in range(places))
        self.turns = tuple(turning_point(degree, weights) for degree in self.degrees)
        self._dense = [_dense(polynomial, self.degrees) for polynomial in polynomials]
        self._units = units or (1,) * places
        self._weights = weights
        self._tables: dict[_Fixed, _Table] = {}

    def beyond(self, distances: Distances) -> Fraction:
        """The maximum over all u ≥ ``distances``."""
        table = self._table(distances)
        place = 0
        for s, one in zip(distances, table.box, strict=True):
            place = place * len(one) + s - one[0] if len(one) > 1 else place
        return Fraction(table.beyond[place], table.denominator)

    def peak(self) -> tuple[Fraction, Distances]:
        """The maximum over all vectors, and of those that attain it one with the least total."""
        table = self._table((0,) * len(self.turns))
        most = max(table.values)
        places = attained(table.values, most, table.box)
        return Fraction(most, table.denominator), min(places, key=sum)

    def _table(self, distances: Distances) -> _Table:
        fixed = tuple(
            s if s > turn else None for s, turn in zip(distances, self.turns, strict=True)
        )
        if fixed not in self._tables:
            box = [
                range(turn + 1) if here is None else range(here, here + 1)
                for turn, here in zip(self.turns, fixed, strict=True)
            ]
            values: list[int] = []
            for dense in self._dense:
                here = values_in_box(dense, self.degrees, box, self._units)
                values = list(map(max, values, here)) if values else here
            self._tables[fixed] = _Table(values, box, self._weights)
        return self._tables[fixed]


class _Table:
    """The weighted values of a box over a common denominator."""

    def __init__(self, values: list[int], box: list[range], weights: Weights) -> None:
        self.box = box
        scaled, self.denominator = weights_in_box(box, weights)
        self.values = list(map(mul, values, scaled))

    @cached_property
    def beyond(self) -> list[int]:
        """For each vector the greatest of the values that are not below it."""
        beyond = list(self.values)
        stride = len(beyond)
        for one in self.box:
            # From the far end of this direction to its beginning, whole rows at a time.
            row = stride // len(one)
            for start in range(0, len(beyond), stride):
                for i in range(start + stride - 2 * row, start - 1, -row):
                    beyond[i : i + row] = map(
                        max, beyond[i : i + row], beyond[i + row : i + 2 * row]
                    )
            stride = row
        return beyond


def weights_in_box(box: Sequence[range], weights: Weights) -> tuple[list[int], int]:
    """The weight of every vector of the box over a common denominator, and that."""
    # A fold is repeated where boxes are small; a large list is not worth its memory.
    few = prod(map(len, box)) <= _FEW_VECTORS
    # A direction that stays at 0 adds nothing, wherever it stands.
    wide = tuple(one for one in box if one != range(1))
    return _kept_weights(wide, weights) if few else _all_weights(wide, weights)


@lru_cache(maxsize=16)
def _kept_weights(box: tuple[range, ...], weights: Weights) -> tuple[list[int], int]:
    return _all_weights(box, weights)


def _all_weights(box: Sequence[range], weights: Weights) -> tuple[list[int], int]:
    least = sum(one[0] for one in box)
    found = [weights[k] for k in range(least, sum(one[-1] for one in box) + 1)]
    denominator = lcm(*(w.denominator for w in found))
    scaled = [w.numerator * (denominator // w.denominator) for w in found]
    totals = [0]
    for one in box:
        totals = [total + i for total in totals for i in range(len(one))]
    return [scaled[total] for total in totals], denominator


def attained(values: Sequence[int], value: int, box: Sequence[range]) -> Iterator[Distances]:
    """The vectors of a box at which the values are a certain one, the last direction fastest."""
    place = -1
    with suppress(ValueError):
        while True:
            place = values.index(value, place + 1)
            left, vector = place, list[int]()
            for one in reversed(box):
                left, i = divmod(left, len(one))
                vector.append(one[i])
            yield tuple(reversed(vector))


def values_in_box(
    dense: list[int], degrees: Distances, box: Sequence[range], units: Iterable[int]
) -> list[int]:
    """A polynomial in binomials at every vector of the box, the last direction fastest.

    ``dense`` has its coefficients, the last direction fastest too. The distance s of a direction
    whose units have m rows stands for m · (s + 1) − 1 steps.
    """
    values = dense
    # The first direction that is left is always in front, and goes behind all others when done.
    for degree, one, unit in zip(degrees, box, units, strict=True):
        size = len(values) // (degree + 1)
        slices = [values[i : i + size] for i in range(0, len(values), size)]
        rows = []
        first = unit * (one[0] + 1) - 1
        # The values at the first distance of all its differences; then each is a sum.
        differences = [
            _combined([comb(first, j) for j in range(degree + 1 - i)], slices[i:])
            for i in range(degree + 1)
        ]
        for s in one:
            rows.append(differences[0])
            if s != one[-1]:
                for _ in range(unit):
                    differences = [
                        *(list(map(add, a, b)) for a, b in pairwise(differences)),
                        differences[-1],
                    ]
        values = [value for together in zip(*rows, strict=True) for value in together]
    return values


def _combined(factors: list[int], slices: list[list[int]]) -> list[int]:
    found = slices[0]
    for factor, one in zip(factors[1:], slices[1:], strict=True):
        if factor:
            found = [a + factor * b for a, b in zip(found, one, strict=True)]
    return found


def _dense(polynomial: Polynomial, degrees: Distances) -> list[int]:
    return [polynomial.get(powers, 0) for powers in product(*(range(d + 1) for d in degrees))]
