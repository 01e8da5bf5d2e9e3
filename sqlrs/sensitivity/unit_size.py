"""What the results of one unit add up to at most on every database, where keys alone decide it.

An id that determines the row of every atom has one result. docs/proofs/owners.md.
"""

from __future__ import annotations

from math import prod

from sqlrs.measures import Measure, Signed
from sqlrs.query import Term, Variable, closure


def measure_size_bound(measure: Measure) -> int | None:
    """What the numbers of one unit add up to at most, without their signs; None: data decide it."""
    if measure.per_unit is not None:
        return measure.per_unit.most
    total = 0
    for term in measure.terms:
        size = size_bound(term)
        if size is None:
            return None
        total += size
    return total


def size_bound(signed: Signed) -> int | None:
    """What one unit's results add up to at most, as often as each counts; None: data decide it.

    A unit may stand at the place of each owner, so several owners add up.
    """
    total = 0
    for owner in signed.owners:
        if not _has_one_result(signed, owner):
            return None
        total += 1
    weights = prod(atom.weight.bound for atom in signed.query.atoms if atom.weight is not None)
    return total * weights * abs(signed.coefficient)


def _has_one_result(signed: Signed, owner: Term) -> bool:
    query = signed.query
    start = frozenset({owner} if isinstance(owner, Variable) else ())
    known, reached = closure(query, query.everything, start)
    if query.distinct is not None:
        return query.distinct <= known
    return reached == query.everything
