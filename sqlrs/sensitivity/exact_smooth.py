"""Exact smooth sensitivity of the two patterns for which it is known: triangles and t-stars.

Triangles after Nissim, Raskhodnikova and Smith, stars after Karwa and others, both in the query's
own count and for a change of one row. docs/sensitivities.md derives the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, count
from math import perm

from sqlrs.catalog import Table
from sqlrs.query import Atom, Inequality, Query, Term, Variable
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.weights import Weights


@dataclass(frozen=True)
class Triangle:
    """Directed 3-cycles of one table, which must hold an undirected graph without loops."""

    table: Table
    source: str
    target: str


@dataclass(frozen=True)
class Star:
    """A centre with ``size`` different leaves, each by one row of the table."""

    table: Table
    centre: str
    leaf: str
    size: int


@dataclass(frozen=True)
class Pair:
    """Two nodes i, j: their common neighbours, and their degrees' sum without the edge ij itself.

    Every pair of the graph counts, also with a node that has no edge. A pair that is given with
    fewer common neighbours or less reach than it has does no harm beside the true one.
    """

    common: int
    reach: int


def recognise(query: Query) -> Triangle | Star:
    """The pattern of the query, by its structure alone, or a refusal."""
    table = query.atoms[0].table
    plain = (
        table.private
        and all(atom.table == table and not atom.filters for atom in query.atoms)
        and not query.comparisons
        and not query.generals
        and query.distinct is None
        and _all_different(query)
    )
    columns = [column.name for column in table.columns if {column.name} < _only_key(table)]
    if plain and len(columns) == 2:
        rows = [_variables(atom, columns) for atom in query.atoms]
        for centre, leaf in ((0, 1), (1, 0)):
            if _is_star(rows, centre, leaf):
                return Star(table, columns[centre], columns[leaf], len(rows))
        if _is_cycle(rows):
            return Triangle(table, *columns)
    raise refusal("smooth_unsupported")


def require_simple_graph(irregular_edges: int) -> None:
    """Refuse a table that has loops or rows without their opposite; this tells about the data."""
    if irregular_edges:
        raise refusal(
            "smooth_unsupported",
            "exact smooth sensitivity of triangles needs an undirected graph without loops",
            hint="store each edge in both directions and remove loops",
        )


def triangle_sensitivity(pairs: Iterable[Pair], weights: Weights) -> Bound:
    """SS of the triangle query: 3 · max over pairs of min(common + k, ⌊(reach + k) / 2⌋) at k.

    A change makes a node that is adjacent to one of the two a common neighbour; when no such node
    is left, each further common neighbour takes two changes.
    """
    best: dict[int, int] = {}
    for pair in pairs:
        best[pair.common] = max(pair.reach, best.get(pair.common, 0))

    def local(k: int) -> int:
        return 3 * max((min(a + k, (b + k) // 2) for a, b in best.items()), default=k // 2)

    def settled(k: int) -> bool:
        # local(k + 1) ≤ local(k) + 3, so from here on each weight takes away more than is gained.
        return bool(weights.decay_ceiling * (local(k) + 3) <= local(k))

    return _maximum(local, settled, weights)


def star_sensitivity(max_degree: int, size: int, weights: Weights) -> Bound:
    """SS of the t-star query: t · (d+k)(d+k−1)…(d+k−t+2) at k, d the greatest degree."""

    def local(k: int) -> int:
        return size * perm(max_degree + k, size - 1)

    def settled(k: int) -> bool:
        # local(k + 1) / local(k) = (d+k+1) / (d+k−t+2) falls in k.
        return bool(local(k) > 0 and weights.decay_ceiling * local(k + 1) <= local(k))

    return _maximum(local, settled, weights)


def _maximum(
    local: Callable[[int], int], settled: Callable[[int], bool], weights: Weights
) -> Bound:
    best = Bound()
    for k in count():
        value = weights[k] * local(k)
        if value > best.value:
            best = Bound(value, k)
        if settled(k):
            break
    return best


def _only_key(table: Table) -> frozenset[str]:
    """The columns of the table's key if it has exactly one: another would limit what can change."""
    return next(iter(table.keys)) if len(table.keys) == 1 else frozenset()


def _variables(atom: Atom, columns: list[str]) -> tuple[Term, ...] | None:
    """What stands in the two columns; other columns must not take part."""
    terms = dict(atom.terms)
    return tuple(terms[c] for c in columns) if set(terms) == set(columns) else None


def _is_star(rows: list[tuple[Term, ...] | None], centre: int, leaf: int) -> bool:
    leaves = {row[leaf] for row in rows if row}
    centres = {row[centre] for row in rows if row}
    return (
        len(centres) == 1
        and len(leaves) == len(rows)
        and centres.isdisjoint(leaves)
        and all(isinstance(term, Variable) for term in centres | leaves)
    )


def _is_cycle(rows: list[tuple[Term, ...] | None]) -> bool:
    follows = {row[0]: row[1] for row in rows if row}
    if len(rows) != 3 or len(follows) != 3:
        return False
    start = next(iter(follows))
    second = follows[start]
    third = follows.get(second)
    return (
        third is not None
        and len({start, second, third}) == 3
        and follows.get(third) == start
        and all(isinstance(term, Variable) for term in follows)
    )


def _all_different(query: Query) -> bool:
    pairs = combinations(query.variables(query.everything), 2)
    return query.inequalities == {Inequality.between(*pair) for pair in pairs}
