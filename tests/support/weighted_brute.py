"""Sums by brute force: Σ Π w_i over results, for a query, for its groups, and W_E.

As `brute`, it follows the definitions word by word. The weights of the rows of a result are read by
variables of their own, which the query does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import prod

from sqlrs.query import Constant, Query, Term, Variable
from sqlrs.residuals.residual import Members, Residual, Residuals
from tests.support import brute
from tests.support.brute import Assignment, Database

Group = tuple[object, ...]


def weighed(
    query: Query, members: Iterable[int], database: Database
) -> Iterator[tuple[Assignment, int]]:
    """Every combination of rows of the atoms that agrees, with the product of their weights."""
    chosen = sorted(members)
    atoms, reads = list(query.atoms), []
    for i in chosen:
        weight = atoms[i].weight
        if weight is None:
            continue
        term: Term | None = dict(atoms[i].terms).get(weight.column)
        if term is None:
            term = Variable(f"weight of {i}", atoms[i].table.column(weight.column).type)
            atoms[i] = replace(atoms[i], terms=(*atoms[i].terms, (weight.column, term)))
        reads.append((term, weight.bound))
    for assignment in brute.joined(replace(query, atoms=tuple(atoms)), chosen, database):
        total = 1
        for term, bound in reads:
            value = term.value if isinstance(term, Constant) else assignment[term]
            assert isinstance(value, int) and 0 <= value <= bound
            total *= value
        yield assignment, total


def results(query: Query, database: Database) -> Iterator[tuple[Assignment, int]]:
    """The results of the query with what each counts; of DISTINCT ones each output once."""
    seen = set[Group]()
    for assignment, weight in weighed(query, query.everything, database):
        if not all(brute.holds(p, assignment) for p in query.predicates):
            continue
        if query.distinct is not None:
            output = tuple(assignment[v] for v in sorted(query.distinct))
            if output in seen:
                continue
            seen.add(output)
        yield assignment, weight


def total(query: Query, database: Database) -> int:
    """The value of the query."""
    return sum(weight for _, weight in results(query, database))


def vector(query: Query, keys: tuple[Term | None, ...], database: Database) -> dict[Group, int]:
    """The value of each group that is not empty."""
    found: dict[Group, int] = {}
    for assignment, weight in results(query, database):
        group = tuple(assignment[k] if isinstance(k, Variable) else k for k in keys)
        found[group] = found.get(group, 0) + weight
    return found


def distance(one: dict[Group, int], other: dict[Group, int]) -> int:
    """The ℓ₁ distance of two vectors of groups."""
    return sum(abs(one.get(g, 0) - other.get(g, 0)) for g in one.keys() | other.keys())


def bound(query: Query, members: Iterable[int]) -> int:
    """Π B_i over the given atoms."""
    weights = (query.atoms[i].weight for i in members)
    return prod(weight.bound for weight in weights if weight is not None)


def part_sum(residual: Residual, database: Database) -> int:
    """The largest sum over one value of the boundary and of the external variables."""
    query = residual.query
    outside, boundary = sorted(residual.external), sorted(residual.boundary)
    domain = brute.whole_domain(query, database)
    choices = [dict(zip(outside, values, strict=True)) for values in product(*map(domain, outside))]
    groups: dict[Group, int] = {}
    for inner, weight in weighed(query, residual.members, database):
        for number, choice in enumerate(choices):
            assignment = inner | choice
            if all(brute.holds(p, assignment) for p in residual.predicates):
                group = (number, *(assignment[v] for v in boundary))
                groups[group] = groups.get(group, 0) + weight
    return max(groups.values(), default=0)


def residual_sums(
    residuals: Residuals, wanted: Iterable[Members], database: Database
) -> dict[Members, int]:
    """W_E: parts multiply, and what is decided or outside E counts its bound."""
    query = residuals.query
    known: dict[Members, int] = {}

    def value(part: Residual) -> int:
        if part.members not in known:
            known[part.members] = (
                bound(query, part.members) if part.decided else part_sum(part, database)
            )
        return known[part.members]

    return {
        members: bound(query, query.everything - members)
        * prod(map(value, residuals.parts(members)))
        for members in wanted
    }
