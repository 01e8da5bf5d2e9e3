"""Residual sensitivity: the values T_E folded into one smooth bound, exactly.

RS = max over k of w[k] * L_k with L_k = max over distance vectors s of total k and private tables r
of Σ_{∅≠F⊆D_r} T̂_{[n]−F, s}, after Dong and Yi, "A Nearly Instance-optimal Differentially Private
Mechanism for Conjunctive Queries". Proofs: docs/proofs/residual_sensitivity.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

from sqlrs.noise.weights import Weights
from sqlrs.residuals import Members, Residuals, subsets
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.growth import Counts, Growth, Polynomial
from sqlrs.sensitivity.search import maximise


def residual_sensitivity(
    residuals: Residuals, values: Mapping[Members, int], weights: Weights
) -> Bound:
    """RS from T_E of every E in ``residuals.required``; a value that is absent raises KeyError."""
    best = Bound()
    for growth in growths(residuals, values):
        best = maximise(growth, weights, best)
    return best


def growths(residuals: Residuals, values: Mapping[Members, int]) -> tuple[Growth, ...]:
    """The bound on one step for each private table, as a function of the distances."""
    query = residuals.query
    tables = query.private_tables
    sums: dict[Counts, int] = {}
    for outside in subsets(query.private):
        if outside:
            value = values[query.everything - outside]
            if value < 0:
                raise ValueError("a number of results is not negative")
            counts = tuple(len(outside & table) for table in tables)
            sums[counts] = sums.get(counts, 0) + value
    return tuple(
        Growth(changed, {counts: value for counts, value in sums.items() if counts[changed]})
        for changed in range(len(tables))
    )


def distance_polynomial(residuals: Residuals, values: Mapping[Members, int]) -> Polynomial:
    """A polynomial p with L_k ≤ p(k): all distances k, the greatest coefficients over the tables.

    Its degree is at most the number of private atoms minus one, and no coefficient is negative.
    """
    coefficients = [0] * max(1, len(residuals.query.private))
    for growth in growths(residuals, values):
        own = [0] * len(coefficients)
        for counts, value in growth.coefficients.items():
            power = counts[growth.changed]
            # (1+k)^power − k^power, times k for each atom of another table
            for i in range(power):
                own[sum(counts) - power + i] += value * comb(power, i)
        coefficients = list(map(max, coefficients, own))
    return Polynomial(tuple(coefficients))
