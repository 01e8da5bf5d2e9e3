"""The largest sum of results of which each unit has at most a threshold: exact bounds of it.

Q(tau) = max sum of x_k with 0 <= x_k <= w_k, where all x_k of one unit add up to tau at most. Any
guess of a solution gives an exact lower bound, any guess of prices for the units an exact upper
one; where both are near each other the upper one is certified. docs/proofs/packing.md.

Guesses come from floating point, and nothing here trusts them. The module needs numpy, which comes
with the extra ``lp``; whoever imports it has made sure that it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sqlrs.measures import OwnedResults
from sqlrs.records import dataclass
from sqlrs.sensitivity.packing_scores import GAP

Array = np.ndarray[Any, np.dtype[Any]]

_BITS = 38
# Whole numbers below this are computed in 64 bits, others as Python's.
_WORD = 2**62
# Names of units near each other: so many bits make a page, of so many pages a table is kept, and
# so many bits of places without a unit are no waste.
_PAGE, _MOST_PAGES, _FEW = 12, 2**24, 20
# Where more than one in so many results has several cut units, all of them are sorted for good.
_OFTEN = 4


@dataclass(frozen=True, eq=False, repr=False)
class Packing:
    """All results with the weights of their owners, and what each unit has in all. Private.

    ``owners``: a column for each place, in which the unit after the last one stands for nobody.
    ``peaks``: of each result, what that of its units has in all that has the most.
    """

    owners: tuple[Array, ...]
    weights: Array
    peaks: Array
    shares: Array
    total: int

    @classmethod
    def of(cls, results: OwnedResults) -> Packing:
        """No unit stands twice in a row any more."""
        total = sum(results.weights)
        weights = np.asarray(results.weights, dtype=_kind(total))
        owners, units = numbered([np.asarray(c, dtype=np.int64) for c in results.owners])
        owners = [_unless_before(owners, place, units) for place in range(len(owners))]
        shares = _per_unit(owners, weights, units)
        peaks = np.zeros(len(weights), dtype=weights.dtype)
        for column in owners:
            np.maximum(peaks, np.append(shares, 0)[column], out=peaks)
        return cls(tuple(owners), weights, peaks, shares, total)

    @property
    def largest(self) -> int:
        """What the unit with the most has: from there on nothing is cut."""
        return int(self.shares.max(initial=0))

    def cut_to(self, threshold: int) -> CutPacking:
        """The results that the threshold matters to, those of the same cut units together."""
        cut = self.shares > threshold
        number = int(cut.sum())
        places = np.full(len(cut) + 1, number, dtype=np.int64)
        places[:-1][cut] = np.arange(number)
        touched = np.flatnonzero(self.peaks > threshold)
        columns = [places[column[touched]] for column in self.owners]
        merged = _merged(columns, self.weights[touched], number, len(self.weights) // _OFTEN)
        owners, weights = merged or self._by_rank.cut_to(number)
        kept = self.total - int(weights.sum())
        # A result of a cut unit cannot count more than that unit.
        return CutPacking(threshold, kept, number, owners, np.minimum(weights, threshold))

    @cached_property
    def _by_rank(self) -> RankedResults:
        return RankedResults.of(self.owners, self.weights, self.shares)


@dataclass(frozen=True, eq=False, repr=False)
class RankedResults:
    """Results in the order of their units, where 0 is the unit that has the most.

    Whichever units are cut, they come first: results with the same of them stand side by side,
    so that one sorting serves all thresholds. docs/proofs/packing.md, section 3.
    """

    owners: Array
    weights: Array

    @classmethod
    def of(cls, owners: Sequence[Array], weights: Array, shares: Array) -> RankedResults:
        """With ranks in the place of units, those of each result in order."""
        units = len(shares)
        ranks = np.full(units + 1, units, dtype=np.int64)
        ranks[np.argsort(-shares, kind="stable")] = np.arange(units)
        rows = np.sort(np.stack([ranks[column] for column in owners], axis=1), axis=1)
        rows, weights = _merged_sets(rows, weights, units)
        return cls(np.ascontiguousarray(rows.T), weights)

    def cut_to(self, units: int) -> tuple[Array, Array]:
        """The results of the first units, those with the same of them as one."""
        touched = int(np.searchsorted(self.owners[0], units))
        columns = np.minimum(self.owners[:, :touched], units)
        differs = np.ones(touched, dtype=bool)
        differs[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
        new = np.flatnonzero(differs)
        return columns[:, new].T, np.add.reduceat(self.weights[:touched], new)


@dataclass(frozen=True, eq=False, repr=False)
class CutPacking:
    """Q(tau) is ``kept`` and what ``units`` units, all with more than tau, keep of their results.

    ``owners``: a row for each result with the numbers of its units; the number ``units`` is nobody.
    """

    threshold: int
    kept: int
    units: int
    owners: Array
    weights: Array

    def at_most(self, prices: Array) -> tuple[Fraction, Fraction]:
        """An upper bound of Q(tau) by any prices of the units, rounded and put into [0, 1].

        tau for each price, and each result at what its units' prices leave of 1. With it the sum
        of the prices.
        """
        one = 1 << _BITS
        kind = _kind((self.threshold * self.units + int(self.weights.sum())) * one)
        each: Array = np.append(_whole(prices), 0).astype(kind)
        left = np.maximum(one - each[self.owners].sum(axis=1), 0)
        summed = int(each.sum())
        found = self.threshold * summed + int((self.weights.astype(kind) * left).sum())
        return self.kept + Fraction(found, one), Fraction(summed, one)

    def at_least(self, solution: Array) -> Fraction:
        """A lower bound of Q(tau) by any solution in parts of tau, put between 0 and the weights.

        What a unit has beyond tau is taken away from its results, whichever they are.
        """
        tau, one = self.threshold, 1 << _BITS
        most = self.weights.astype(_kind(tau * one)) * one // tau
        parts = np.minimum(_whole(solution), most).astype(_kind(len(most) * one))
        beyond = np.maximum(_per_unit(list(self.owners.T), parts, self.units) - one, 0)
        # What all units have beyond it may be as many times more as a result has owners.
        found = int(parts.sum()) - int(beyond.sum(dtype=object))
        return self.kept + Fraction(max(0, found) * tau, one)

    def certified(self, solution: Array, prices: Array) -> tuple[Fraction, Fraction] | None:
        """The upper bound and the sum of its prices, or None.

        None where the bound is more than kappa tau above the lower one, or a guess has no sense.
        """
        if solution.shape != self.weights.shape or prices.shape != (self.units,):
            return None
        upper, summed = self.at_most(prices)
        if upper > self.at_least(solution) + GAP * self.threshold:
            return None
        return upper, summed


def _whole(guess: Array) -> Array:
    """Numbers of [0, 1] in whole parts of 2**-38; what is none of them is brought there."""
    inside = np.clip(np.nan_to_num(guess.astype(np.float64), nan=0.0), 0.0, 1.0)
    return np.floor(inside * float(1 << _BITS)).astype(np.int64)


def _kind(largest: int) -> np.dtype[Any]:
    """In which numbers sums up to this are exact."""
    return np.dtype(np.int64 if largest < _WORD else object)


def numbered(names: Sequence[Array]) -> tuple[list[Array], int]:
    """Numbers from 0 on in the place of whole numbers that name units, and one above all of them.

    Names that stand near each other keep their distances, so that nothing has to be sorted: in
    pages, of which those without any name are left out.
    """
    if not names or not names[0].size:
        return list(names), 0
    pages = [column >> _PAGE for column in names]
    first, last = min(int(p.min()) for p in pages), max(int(p.max()) for p in pages)
    if last - first < _MOST_PAGES:
        used = np.zeros(last - first + 1, dtype=bool)
        for page in pages:
            used[page - first] = True
        count = int(used.sum())
        if count << _PAGE <= 4 * len(names) * names[0].size + (1 << _FEW):
            place = (np.cumsum(used) - 1) << _PAGE
            within = (1 << _PAGE) - 1
            found = [
                place[page - first] + (column & within)
                for page, column in zip(pages, names, strict=True)
            ]
            return found, count << _PAGE
    different, inverse = np.unique(np.concatenate(names), return_inverse=True)
    return np.split(inverse.astype(np.int64), len(names)), len(different)


def _unless_before(owners: Sequence[Array], place: int, nobody: int) -> Array:
    """The units of a place, or nobody where a unit stands at a place before it already."""
    column = owners[place]
    for before in owners[:place]:
        column = np.where(column == before, nobody, column)
    return column


def _per_unit(owners: Sequence[Array], weights: Array, units: int) -> Array:
    """What the results of each unit add up to."""
    sums = np.zeros(units + 1, dtype=weights.dtype)
    for column in owners:
        np.add.at(sums, column, weights)
    return sums[:-1]


def _merged(
    columns: Sequence[Array], weights: Array, nobody: int, most: int
) -> tuple[Array, Array] | None:
    """Rows with the same units as one; each has one at least. None: more have several than most."""
    if not len(weights):
        return np.zeros((0, len(columns)), dtype=np.int64), weights
    first = columns[0]
    last = np.where(first == nobody, -1, first)
    for column in columns[1:]:
        first = np.minimum(first, column)
        last = np.maximum(last, np.where(column == nobody, -1, column))
    # Most results have one cut unit; these need not be sorted.
    shared = np.flatnonzero(first != last)
    if len(shared) > most:
        return None
    alone = np.zeros(nobody, dtype=weights.dtype)
    np.add.at(alone, first, weights)
    np.subtract.at(alone, first[shared], weights[shared])
    some = np.flatnonzero(alone)
    single = np.full((len(some), len(columns)), nobody, dtype=np.int64)
    single[:, 0] = some
    sets = np.sort(np.stack([column[shared] for column in columns], axis=1), axis=1)
    rows, together = _merged_sets(sets, weights[shared], nobody)
    return np.concatenate([single, rows]), np.concatenate([alone[some], together])


def _merged_sets(owners: Array, weights: Array, nobody: int) -> tuple[Array, Array]:
    """Rows in which the units stand in order; the same rows as one."""
    if not len(owners):
        return owners, weights
    width = owners.shape[1]
    if (nobody + 1) ** width < _WORD:
        key = owners[:, 0].copy()
        for place in range(1, width):
            key = key * (nobody + 1) + owners[:, place]
        order = np.argsort(key, kind="stable")
        new = np.flatnonzero(np.diff(key[order], prepend=-1))
    else:
        order = np.lexsort(owners.T[::-1])
        rows = owners[order]
        new = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
    return owners[order][new], np.add.reduceat(weights[order], new)
