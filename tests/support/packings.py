"""Packings of few units by their definition: hypergraphs, their neighbours and Q(τ) by prices.

Q(τ) is the least τ·Σy + Σ w·max(0, 1 − Σ of the owners' y) over all prices y. That function is
linear between the planes y_u = 0 and Σ of some y = 1; so it is least where as many of these as
there are units meet. The coordinates of such points are quotients of determinants of 0/1 matrices:
for 3 units these are at most 2, for 4 units at most 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from sqlrs.measures import OwnedResults

Weights = Mapping[frozenset[int], int]
_WIDTH = 4


def clipped(weights: Weights, threshold: int) -> Fraction:
    """Q(τ)."""
    return _clipped(tuple(sorted((tuple(sorted(s)), w) for s, w in weights.items())), threshold)


@cache
def _clipped(weights: tuple[tuple[tuple[int, ...], int], ...], threshold: int) -> Fraction:
    units = sorted({unit for units, _ in weights for unit in units})
    pairs = all(len(own) <= 2 for own, _ in weights)
    prices = _prices(len(units), 6 if len(units) > 3 and not pairs else 2)
    small = sum(w for _, w in weights) + threshold * 8 < 2**50
    kind = np.int64 if small else object
    found = prices.sum(axis=1).astype(kind) * threshold
    for own, weight in weights:
        left = 6 - prices[:, [units.index(u) for u in own]].sum(axis=1)
        found = found + np.maximum(left, 0).astype(kind) * weight
    return Fraction(int(found.min()), 6)


@cache
def _prices(units: int, parts: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """All prices in sixths, so that sums are those of integers.

    With two units for each result, however many units there are, halves suffice.
    """
    assert units <= (4 if parts == 6 else 6)
    each = sorted({6 * n // d for d in ((1, 2, 3) if parts == 6 else (1, 2)) for n in range(d + 1)})
    return np.array(list(product(each, repeat=units)), dtype=np.int64).reshape(
        len(each) ** units, units
    )


def hypergraphs(units: int, most: int, sizes: tuple[int, ...] = (1, 2, 3)) -> Iterator[Weights]:
    """All weights up to ``most`` on the sets of so many units."""
    sets = [frozenset(s) for n in sizes for s in combinations(range(units), n)]
    for weights in product(range(most + 1), repeat=len(sets)):
        yield {s: w for s, w in zip(sets, weights, strict=True) if w}


def without(weights: Weights, unit: int) -> Weights:
    """The results that are left when a unit goes."""
    return {units: w for units, w in weights.items() if unit not in units}


def owned(weights: Weights, width: int = _WIDTH) -> OwnedResults:
    """What the database would say of them; units are numbered as the database likes."""
    numbers: dict[int, int] = {}
    for unit in sorted(set(chain.from_iterable(weights)), reverse=True):
        numbers[unit] = len(numbers)
    rows = [sorted(numbers[u] for u in units) for units in weights]
    padded = [[row[0]] * (width - len(row)) + row for row in rows]
    columns = tuple([row[i] for row in padded] for i in range(width))
    return OwnedResults(columns, list(weights.values()))
