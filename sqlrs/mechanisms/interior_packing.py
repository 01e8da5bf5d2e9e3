"""A guess at the solution of a packing with few units and many results: an interior point method.

A step of it solves equations in as many unknowns as there are units; results, of which there may be
millions, are only gone through. Floating point: nothing here is believed, see
``CutPacking.certified``. The primal-dual method of Mehrotra, in parts of the threshold, for

    largest sum of x, where A x + s = 1, x + t = most, and x, s, t >= 0
    least sum of y + most * v, where z = A' y + v - 1, and y, v, z >= 0

with a row of A for each unit. Two things are not as in textbooks, both because there are so many
results. The products x z and t v are wanted in proportion to ``most``, as if a result of weight w
were w results. And a result whose numbers would leave their range stops on its way there, alone:
one of millions must not hold up the others. What is missed by that is made good at once: z or v
grows to what the prices ask for, so that z = A' y + v - 1 at every step, and a unit has left what
its results leave to it, unless that is next to nothing. Without that there are twice the steps, and
at the end only what is missed is large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from sqlrs.records import dataclass
from sqlrs.sensitivity.packing_scores import GAP

if TYPE_CHECKING:
    from sqlrs.sensitivity.packing import Array, CutPacking

# Rounding to parts of the certificate takes its share of the gap that is allowed.
_NEAR_ENOUGH = float(GAP) / 4
# All that was tried took 25 steps at most; what takes twice that makes no progress.
_MOST_STEPS = 50
# In the place of a weight of 0, so that there is something between 0 and it.
_NOTHING = 1e-12
# So much of the way to the border a step may go: of prices and of what units leave; of a result.
_OF_UNITS, _OF_RESULTS = 0.995, 0.6
# A unit's rest becomes what its results leave, unless it would lose more than all but this part.
_LEAST_REST = 0.1
# Added to the diagonal, in parts of it, until the equations can be solved.
_SHIFTS = (0.0, 1e-12, 1e-10, 1e-8)
# So many results at a time stay in the cache, and are too few for numpy to wake further threads.
_PIECE = 1 << 13
_BLOCK = 128
# Equations of more units than that, which are dense, would take too much time and memory; and where
# there are few results for the pairs of units, most of the work would be zeros.
_MOST_UNITS, _PAIRS_FOR_A_RESULT = 6000, 8
# The simplex method finds corners, which are simple numbers, and small packings at once.
_FEWEST_RESULTS = 10_000


def is_for_interior(packing: CutPacking) -> bool:
    """Whether the method can be expected to be the fastest."""
    units, results = packing.units, len(packing.weights)
    dense = units <= _MOST_UNITS and units**2 <= _PAIRS_FOR_A_RESULT * results
    return dense and results >= _FEWEST_RESULTS


def interior_guess(packing: CutPacking, left: Callable[[], object]) -> tuple[Array, Array] | None:
    """A solution in parts of tau and prices of the units; ``left`` raises when time is over."""
    with np.errstate(all="ignore"):
        owners = _Owners(np.ascontiguousarray(packing.owners.T), packing.units)
        most = np.asarray(packing.weights / packing.threshold, dtype=np.float64)
        point = _Point.first(owners, np.maximum(most, _NOTHING))
        for _ in range(_MOST_STEPS):
            left()
            weighed = point.weighed()
            if weighed.apart <= _NEAR_ENOUGH:
                return point.x, point.y
            if not np.isfinite(weighed.apart):
                return None
            try:
                point.advance(weighed)
            except np.linalg.LinAlgError:
                return None
    return None


@dataclass(frozen=True, eq=False, repr=False)
class _Owners:
    """The matrix A by its columns: a row for each place, a column for each result."""

    places: Array
    units: int

    def pieces(self) -> Iterator[slice]:
        """The results, some at a time."""
        number = self.places.shape[1]
        return (slice(i, i + _PIECE) for i in range(0, number, _PIECE))

    def summed(self, prices: Array, piece: slice) -> Array:
        """A' y: what the units of each result cost together."""
        each = np.append(prices, 0.0)
        found: Array = each[self.places[0, piece]]
        for place in self.places[1:, piece]:
            found += each[place]
        return found

    def per_unit(self, amounts: Array, piece: slice) -> Array:
        """A x: what the results of each unit add up to; nobody's last."""
        found: Array = np.zeros(self.units + 1)
        for place in self.places[:, piece]:
            found += np.bincount(place, weights=amounts, minlength=self.units + 1)
        return found

    def all_per_unit(self, amounts: Array) -> Array:
        """The same of all results, without nobody."""
        found: Array = np.zeros(self.units + 1)
        for piece in self.pieces():
            found += self.per_unit(amounts[piece], piece)
        return found[:-1]

    def squared(self, weights: Array) -> Array:
        """A D A': for each two units what their common results weigh."""
        size = self.units + 1
        found: Array = np.zeros((size, size))
        for i, one in enumerate(self.places):
            for other in self.places[:i]:
                counted = np.bincount(one * size + other, weights=weights, minlength=size * size)
                found += counted.reshape(size, size)
        found += found.T
        diagonal = np.zeros(size)
        for piece in self.pieces():
            diagonal += self.per_unit(weights[piece], piece)
        found[np.arange(size), np.arange(size)] += diagonal
        return found[:-1, :-1]


@dataclass(frozen=True, eq=False, repr=False)
class _Triangular:
    """A positive definite matrix as L L', to be solved for several right sides.

    numpy has no method for triangular matrices, so they are solved by blocks; ``inverses`` are
    those of the blocks on the diagonal.
    """

    lower: Array
    inverses: tuple[Array, ...]

    @classmethod
    def of(cls, matrix: Array) -> _Triangular:
        lower = _lower(matrix)
        starts = range(0, len(lower), _BLOCK)
        blocks = (lower[i : i + _BLOCK, i : i + _BLOCK] for i in starts)
        return cls(lower, tuple(np.linalg.inv(block) for block in blocks))

    def solved(self, right: Array) -> Array:
        found = right.copy()
        for number, inverse in enumerate(self.inverses):
            start = number * _BLOCK
            end = start + len(inverse)
            found[start:end] = inverse @ found[start:end]
            found[end:] -= self.lower[end:, start:end] @ found[start:end]
        for number, inverse in reversed(list(enumerate(self.inverses))):
            start = number * _BLOCK
            end = start + len(inverse)
            found[start:end] = inverse.T @ found[start:end]
            found[:start] -= self.lower[start:end, :start].T @ found[start:end]
        return found


@dataclass(frozen=True, eq=False, repr=False)
class _Weighed:
    """Of a point: what both sides are apart and the sum of all products; by unit the rest.

    A D (v - z), A D (1/x - 1/t), and A x.
    """

    apart: float
    products: float
    straight: Array
    centred: Array
    used: Array


@dataclass(eq=False, repr=False)
class _Point:
    """Where the method stands, strictly inside: by result x, t, z and v, by unit s and y.

    ``kept``: three numbers for each result that live as long as a step.
    """

    owners: _Owners
    x: Array
    t: Array
    z: Array
    v: Array
    s: Array
    y: Array
    kept: tuple[Array, Array, Array]

    @classmethod
    def first(cls, owners: _Owners, most: Array) -> _Point:
        """Each result has what its unit with the most leaves to it, each unit the same price."""
        loads = owners.all_per_unit(most)
        share = np.append(np.minimum(0.7, 0.7 / loads), 0.7)
        x = most * share[owners.places].min(axis=0)
        y = np.full(owners.units, 1 / len(owners.places))
        apart = np.concatenate([owners.summed(y, p) for p in owners.pieces()]) - 1
        v = np.maximum(-apart, 0) + 0.3
        kept = (np.empty_like(x), np.empty_like(x), np.empty_like(x))
        return cls(owners, x, most - x, apart + v, v, 1 - owners.all_per_unit(x), y, kept)

    def weighed(self) -> _Weighed:
        """Where it stands, once it misses as little as it can; D into ``kept``."""
        straight, centred, used = np.zeros((3, self.owners.units + 1))
        apart = float(self.y.sum())
        products = float(self.s @ self.y)
        for p in self.owners.pieces():
            x, t, z, v = self.x[p], self.t[p], self.z[p], self.v[p]
            beyond = self.owners.summed(self.y, p) - 1
            missed = beyond + v - z
            z += np.maximum(missed, 0)
            v += np.maximum(-missed, 0)
            d = 1 / (z / x + v / t)
            self.kept[0][p] = d
            apart += float((x + t) @ np.maximum(-beyond, 0) - x.sum())
            products += float(x @ z + t @ v)
            straight += self.owners.per_unit(d * (v - z), p)
            centred += self.owners.per_unit(d * (x + t) * (1 / x - 1 / t), p)
            used += self.owners.per_unit(x, p)
        apart += float(np.maximum(used[:-1] - 1, 0).sum())
        rest = 1 - used[:-1]
        self.s = np.where(rest > _LEAST_REST * self.s, rest, self.s)
        return _Weighed(apart, products, straight[:-1], centred[:-1], used[:-1])

    def advance(self, at: _Weighed) -> None:
        """One step: a straight one is tried, and corrected by what it misses."""
        owners, s, y = self.owners, self.s, self.y
        missing = 1 - s - at.used
        matrix = owners.squared(self.kept[0])
        matrix[np.arange(owners.units), np.arange(owners.units)] += s / y
        equations = _Triangular.of(matrix)
        dy = equations.solved(at.straight - s - missing)
        left, moved, bent = self._tried(dy)
        ds = missing - moved
        left += float(np.maximum(s + ds, 0) @ np.maximum(y + dy, 0))
        number = 2 * float(self.x.sum() + self.t.sum()) + owners.units
        centre = min(left, at.products) / number
        wanted = (centre - ds * dy) / y - s
        dy = equations.solved(at.straight + centre * at.centred + bent + wanted - missing)
        moved = self._corrected(dy, centre)
        ds = missing - moved
        primal, dual = _part(s, ds), _part(y, dy)
        self._moved(primal, dual)
        self.s, self.y = s + primal * ds, y + dual * dy

    def _tried(self, dy: Array) -> tuple[float, Array, Array]:
        """The straight step of all results, and its products dx dz and dx dv into ``kept``.

        What would be left of the results' products, A dx, and what the products of changes do by
        unit.
        """
        moved, bent = np.zeros((2, self.owners.units + 1))
        left = 0.0
        for p in self.owners.pieces():
            x, t, z, v = self.x[p], self.t[p], self.z[p], self.v[p]
            d, priced = self.kept[0][p], self.owners.summed(dy, p)
            dx = d * (v - z - priced)
            dv = v / t * dx - v
            dz = priced + dv
            left += float(np.maximum(x + dx, 0) @ np.maximum(z + dz, 0))
            left += float(np.maximum(t - dx, 0) @ np.maximum(v + dv, 0))
            self.kept[1][p], self.kept[2][p] = dx * dz, dx * dv
            moved += self.owners.per_unit(dx, p)
            bent -= self.owners.per_unit(d * (self.kept[1][p] / x + self.kept[2][p] / t), p)
        return left, moved[:-1], bent[:-1]

    def _corrected(self, dy: Array, centre: float) -> Array:
        """The step of all results into ``kept``, as dx, dz and dv, and A dx."""
        moved: Array = np.zeros(self.owners.units + 1)
        first, second, third = self.kept
        for p in self.owners.pieces():
            x, t, z, v = self.x[p], self.t[p], self.z[p], self.v[p]
            priced = self.owners.summed(dy, p)
            middle = centre * (x + t)
            upper = (middle + third[p]) / t - v
            dx = first[p] * ((middle - second[p]) / x - z - upper - priced)
            dv = upper + v / t * dx
            first[p], second[p], third[p] = dx, priced + dv, dv
            moved += self.owners.per_unit(dx, p)
        return moved[:-1]

    def _moved(self, primal: float, dual: float) -> None:
        """No result goes further than most of its way to the border, whatever others do."""
        for p in self.owners.pieces():
            x, t, z, v = self.x[p], self.t[p], self.z[p], self.v[p]
            dx = np.clip(primal * self.kept[0][p], -_OF_RESULTS * x, _OF_RESULTS * t)
            x += dx
            t -= dx
            np.maximum(z + dual * self.kept[1][p], (1 - _OF_RESULTS) * z, out=z)
            np.maximum(v + dual * self.kept[2][p], (1 - _OF_RESULTS) * v, out=v)


def _part(numbers: Array, change: Array) -> float:
    """How much of a change leaves all of them above 0, at most nearly all of it."""
    return _OF_UNITS / max(1.0, -float((change / numbers).min()))


def _lower(matrix: Array) -> Array:
    """L of a matrix, or of one hardly larger: near the end rounding may leave none of its own."""
    diagonal = matrix.diagonal().copy()
    for shift in _SHIFTS:
        np.fill_diagonal(matrix, diagonal * (1 + shift))
        try:
            return np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError
