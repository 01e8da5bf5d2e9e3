"""The smooth bound of a sum: counts N_E and weighted sums W_E of the same sets, moved together.

A query sums Π_i w_i over its results, 0 ≤ w_i ≤ B_i, and B = Π_i B_i. W_E is the
largest sum over results of q_E, times B_i of the atoms outside E. It steps as N_E does, and stays
below B times as many results:

    Ψ_r(W)_E = min(W_E + g_{E,r}(W), Π_C Ψ_r(W)_C / B^(parts − 1), B · Ψ_r(N)_E)

Proof: docs/proofs/weighted.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

from sqlrs.query import Query, closure
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.recursion import Gain, Move, Recursion, Step
from sqlrs.sensitivity.refined import (
    choose_method,
    folded,
    folds_quickly,
    is_quick,
    reached,
    released_sensitivity,
)
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights


def largest_weight(query: Query) -> int:
    """B: the most that one result can count, 1 where the query has no weights."""
    return prod(atom.weight.bound for atom in query.atoms if atom.weight is not None)


def needs_sums(query: Query) -> bool:
    """Whether the bound reads sums W_E; of a count, and of DISTINCT results, counts are enough."""
    if query.distinct is not None:
        if not query.weighted <= closure(query, query.everything, query.distinct)[1]:
            raise ValueError("a DISTINCT result has weights that its output does not decide")
        return False
    return bool(query.weighted) and largest_weight(query) > 0


@lru_cache(maxsize=128)
def counted(residuals: Residuals) -> Residuals:
    """The residuals of the same query without its weights, under the same reading."""
    if not residuals.query.weighted:
        return residuals
    return Residuals(residuals.query.unweighted, residuals.reading)


def sum_reached(residuals: Residuals) -> tuple[Members, ...]:
    """Every set whose N_E the bound needs and, where ``needs_sums``, W_E; the small ones first."""
    needed = set(reached(counted(residuals)))
    if needs_sums(residuals.query):
        # Sets that count the same results may have different weights.
        needed.update(reached(residuals))
    return tuple(sorted(needed, key=lambda members: (len(members), sorted(members))))


def sum_sensitivity(
    residuals: Residuals,
    counts: Mapping[Members, int],
    sums: Mapping[Members, int],
    weights: Weights,
) -> Bound:
    """The smooth bound of a query with weights from N_E and W_E of the sets in ``sum_reached``.

    It is never above B times the bound of the count, and equal to that of a query without weights.
    A value that is absent raises KeyError.
    """
    query = residuals.query
    summed = needs_sums(query)
    count = released_sensitivity(counted(residuals), counts, weights)
    by_count = Bound(largest_weight(query) * count.value, count.k)
    if not summed:
        return by_count if by_count.value else Bound()
    found = [by_count]
    recursion = compile_sums(residuals)
    method = choose_method(recursion, weights)
    if method is not None:
        size = len(recursion.coordinates) // 2
        start = (
            *(counts[members] for members in recursion.coordinates[:size]),
            *(sums[members] for members in recursion.coordinates[size:]),
        )
        found.append(folded(recursion, start, weights, method))
    # A lattice is never above RS of the same values.
    if method is None or not method.lattice:
        found.append(residual_sensitivity(residuals, sums, weights))
    return min(found, key=lambda bound: bound.value)


def sum_is_quick(residuals: Residuals, weights: Weights) -> bool:
    """Whether ``sum_sensitivity`` takes a few milliseconds; no data."""
    if not is_quick(counted(residuals), weights):
        return False
    return not needs_sums(residuals.query) or folds_quickly(compile_sums(residuals), weights)


@lru_cache(maxsize=128)
def compile_sums(residuals: Residuals) -> Recursion:
    """The recursion of all N_E followed by all W_E of the same sets; L is made of the W_E."""
    recursion = compile_recursion(residuals)
    both = _Both(len(recursion.coordinates), largest_weight(residuals.query))
    return Recursion(
        coordinates=recursion.coordinates * 2,
        steps=tuple(map(both.step, recursion.steps)),
        answers=tuple(tuple(map(both.gain, gains)) for gains in recursion.answers),
        movers=tuple(map(both.step, recursion.movers)),
        roles=recursion.roles,
    )


class _Both:
    """The moves of counts as moves of counts and, ``size`` places further on, of sums."""

    def __init__(self, size: int, bound: int) -> None:
        self.size = size
        self.bound = bound

    def step(self, step: Step) -> Step:
        """All counts move first: the sums stay below them."""
        return Step(step.table, (*step.moves, *map(self.move, step.moves)), step.rows)

    def move(self, move: Move) -> Move:
        """The move of W_E. Each factor holds the weights outside it, so all but one too often."""
        factors = tuple(self.size + i for i in move.factors or ())
        return Move(
            self.size + move.target,
            tuple(map(self.gain, move.gains)),
            factors or None,
            self.bound ** max(0, len(factors) - 1),
            (self.bound, move.target),
        )

    def gain(self, gain: Gain) -> Gain:
        """A decided set has the sum B."""
        return Gain(self.bound * gain.constant, tuple(self.size + i for i in gain.terms))
