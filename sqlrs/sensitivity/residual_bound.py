"""Residual sensitivity: the values T_E folded into one smooth bound, exactly.

RS = max over k of w[k] * L_k with L_k = max over distance vectors s of total k and private tables r
of Σ_{∅≠F⊆D_r} T̂_{[n]−F, s}, after Dong and Yi, "A Nearly Instance-optimal Differentially Private
Mechanism for Conjunctive Queries". Proofs: docs/proofs/residual_sensitivity.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from math import comb, prod

from sqlrs.query import Query
from sqlrs.residuals.residual import Members, Residuals, subsets
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.growth import Growth, Powers
from sqlrs.sensitivity.search import are_few, maximise
from sqlrs.sensitivity.weights import Weights

# Private tables by number, in the order of `Query.private_tables`; a group has one distance.
Groups = tuple[tuple[int, ...], ...]

# Measured: the search stays within seconds up to these sizes, which count the work of one box.
_MOST_WORK = 3**8
_MOST_WORK_IF_SLOW = 4**5
_SLOW_DECAY = Fraction(95, 100)


def residual_sensitivity(
    residuals: Residuals,
    values: Mapping[Members, int],
    weights: Weights,
    enough: Fraction | None = None,
) -> Bound:
    """RS from T_E of every E in ``residuals.required``; a value that is absent raises KeyError.

    A number that is ``enough`` ends the search: what is returned is at least that or RS.
    """
    best = Bound()
    for growth in growths(residuals, values, groups(residuals.query, weights)):
        best = maximise(growth, weights, best)
        if enough is not None and best.value >= enough:
            break
    return best


def residual_is_quick(query: Query, weights: Weights) -> bool:
    """Whether ``residual_sensitivity`` takes some milliseconds; no data."""
    sizes = [len(atoms) for atoms in query.private_tables]
    degrees = [sum(sizes[table] for table in group) for group in groups(query, weights)]
    return are_few(degrees, weights)


def groups(query: Query, weights: Weights) -> Groups:
    """The tables that share a distance: none, unless there are very many private tables.

    A bound with shared distances is smooth as well, and not below RS. The choice is made from
    public facts alone.
    """
    sizes = [len(atoms) for atoms in query.private_tables]
    most = _MOST_WORK_IF_SLOW if weights.decay > _SLOW_DECAY else _MOST_WORK
    found: list[tuple[tuple[int, ...], int]] = [((i,), n) for i, n in enumerate(sizes)]
    while prod(size + 2 for _, size in found) > most:
        found.sort(key=lambda group: (group[1], group[0]))
        (one, size), (other, more), *rest = found
        found = [*rest, ((*one, *other), size + more)]
    return tuple(sorted(tables for tables, _ in found))


def growths(
    residuals: Residuals, values: Mapping[Members, int], together: Groups
) -> tuple[Growth, ...]:
    """The bound on one step for each private table, as a polynomial in the groups' distances.

    A set O of private atoms leaves the query in as many ways as it splits into F ∪ E' with F ≠ ∅ in
    D_r. With c_t = |O ∩ D_t| it adds T_{[n]−O} · ((1+s_r)^c_r − s_r^c_r) · Π_{t≠r} s_t^c_t, so only
    the sums of T over all O with the same counts matter. Distances count units; one of m_t rows is
    m_t steps, which multiplies the term of O by Π_t m_t^c_t: docs/proofs/rows_per_unit.md.
    """
    query = residuals.query
    units = [query.atoms[min(atoms)].table.rows_per_unit for atoms in query.private_tables]
    sums = Counter[Powers]()
    for outside in subsets(query.private):
        if outside:
            value = values[query.everything - outside]
            if value < 0:
                raise ValueError("a number of results is not negative")
            counts = tuple(len(outside & atoms) for atoms in query.private_tables)
            sums[counts] += value * prod(map(pow, units, counts))
    return tuple(_growth(sums, r, together) for r in range(len(query.private_tables)))


def _growth(sums: Mapping[Powers, int], changed: int, together: Groups) -> Growth:
    coefficients = Counter[Powers]()
    for counts, value in sums.items():
        power = counts[changed]
        for kept in range(power):
            # The binomial expansion of (1 + s)^power − s^power
            left = [kept if table == changed else n for table, n in enumerate(counts)]
            coefficients[tuple(sum(left[t] for t in group) for group in together)] += (
                comb(power, kept) * value
            )
    return Growth(coefficients)
