"""Residual sensitivity: the values T_E folded into one smooth bound, exactly.

RS = max over k of w[k] * L_k with L_k = max over distance vectors s of total k and private tables r
of Σ_{∅≠F⊆D_r} T̂_{[n]−F, s}, after Dong and Yi, "A Nearly Instance-optimal Differentially Private
Mechanism for Conjunctive Queries". Proofs: docs/proofs/residual_sensitivity.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
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
    found = growths(residuals, values, groups(residuals.query, weights))
    # Those that are likely to be the largest come first: the search may end there.
    for growth in sorted(found, key=lambda one: -sum(one.coefficients.values())):
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
    sums = Counter[Powers]()
    for members, counts, units in _counted(residuals):
        value = values[members]
        if value < 0:
            raise ValueError("a number of results is not negative")
        sums[counts] += value * units
    return tuple(_growth(sums, r, together) for r in range(len(residuals.query.private_tables)))


@lru_cache(maxsize=128)
def _counted(residuals: Residuals) -> tuple[tuple[Members, Powers, int], ...]:
    """For each O the set [n] − O, how many atoms of each table O has, and Π_t m_t^c_t."""
    query = residuals.query
    units = [query.atoms[min(atoms)].table.rows_per_unit for atoms in query.private_tables]
    found = []
    for outside in filter(None, subsets(query.private)):
        counts = tuple(len(outside & atoms) for atoms in query.private_tables)
        found.append((query.everything - outside, counts, prod(map(pow, units, counts))))
    return tuple(found)


def _growth(sums: Mapping[Powers, int], changed: int, together: Groups) -> Growth:
    found: dict[Powers, int] = {}
    for farther, counts, factor in _farther(tuple(sums), changed, together):
        found[farther] = found.get(farther, 0) + factor * sums[counts]
    return Growth(found)


@lru_cache(maxsize=128)
def _farther(
    counts: tuple[Powers, ...], changed: int, together: Groups
) -> tuple[tuple[Powers, Powers, int], ...]:
    """The terms of the binomial expansions of (1 + s)^c − s^c: powers, of which counts, factor."""
    found = []
    for one in counts:
        power = one[changed]
        for kept in range(power):
            left = [kept if table == changed else n for table, n in enumerate(one)]
            powers = tuple(sum(left[t] for t in group) for group in together)
            found.append((powers, one, comb(power, kept)))
    return tuple(found)
