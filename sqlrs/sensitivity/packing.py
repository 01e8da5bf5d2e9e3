"""The largest sum of results of which each unit has at most a threshold: exact bounds of it.

Q(tau) = max sum of x_k with 0 <= x_k <= w_k, where all x_k of one unit add up to tau at most. Any
guess of a solution gives an exact lower bound, any guess of prices for the units an exact upper
one; where both are near each other the upper one is certified. docs/proofs/packing.md.

Guesses come from floating point, and nothing here trusts them. The module needs numpy, which comes
with the extra ``lp``; whoever imports it has made sure that it is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sqlrs.measures import OwnedResults
from sqlrs.sensitivity.packing_scores import GAP

Array = np.ndarray[Any, np.dtype[Any]]

_BITS = 38
# Whole numbers below this are computed in 64 bits, others as Python's.
_WORD = 2**62


@dataclass(frozen=True, eq=False, repr=False)
class Packing:
    """All results with the weight of each set of owners, and what each unit has in all. Private.

    Results stand in the order of their ``peaks``, the largest first: what that unit has in all that
    has the most of a result's units. Those that a threshold matters to are the first ones.
    """

    owners: Array
    weights: Array
    peaks: Array
    shares: Array
    total: int

    @classmethod
    def of(cls, results: OwnedResults) -> Packing:
        """The units are numbered from 0 on; -1 is nobody."""
        owners = np.stack([np.asarray(c, dtype=np.int64) for c in results.owners], axis=1)
        total = sum(results.weights)
        weights = np.asarray(results.weights, dtype=_kind(total))
        units = int(owners.max(initial=-1)) + 1
        # One unit more stands for nobody.
        owners = np.where(owners < 0, units, owners)
        shares = _per_unit(owners, weights, units)
        peaks = np.append(shares, 0)[owners].max(axis=1, initial=0)
        order = np.argsort(-peaks)
        return cls(owners[order], weights[order], peaks[order], shares, total)

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
        touched = int((self.peaks > threshold).sum())
        owners = np.sort(places[self.owners[:touched]], axis=1)
        owners, weights = _merged(owners, self.weights[:touched], number)
        kept = self.total - int(weights.sum())
        # A result of a cut unit cannot count more than that unit.
        return CutPacking(threshold, kept, number, owners, np.minimum(weights, threshold))


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
        beyond = np.maximum(_per_unit(self.owners, parts, self.units) - one, 0)
        found = int(parts.sum()) - int(beyond.sum())
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


def _per_unit(owners: Array, weights: Array, units: int) -> Array:
    """What the results of each unit add up to."""
    sums = np.zeros(units + 1, dtype=weights.dtype)
    for place in range(owners.shape[1]):
        np.add.at(sums, owners[:, place], weights)
    return sums[:-1]


def _merged(owners: Array, weights: Array, nobody: int) -> tuple[Array, Array]:
    """Rows with the same units as one."""
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
