"""Elastic sensitivity: FLEX's rules over maximum frequencies, for comparison.

Johnson, Near, Song, "Towards Practical Differential Privacy for SQL Queries" (2018). The rules, and
where they are looser than residual sensitivity, are in docs/sensitivities.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlrs.catalog import Table
from sqlrs.query import Atom, Query, Variable
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.search import last_useful
from sqlrs.sensitivity.weights import Weights


@dataclass(frozen=True)
class Frequency:
    """mf: the greatest number of rows of a table that share one non-null value of a column."""

    table: Table
    column: str


@dataclass(frozen=True)
class _Join:
    """One step of the left-deep plan: the atom joins the earlier one ``left`` by a column each."""

    atom: int
    left: int
    left_column: str
    column: str


def needed_frequencies(query: Query) -> list[Frequency]:
    """The maximum frequencies that `elastic_sensitivity` reads; refuses what FLEX cannot join."""
    found: dict[Frequency, None] = {}
    for join in _plan(query):
        found[Frequency(query.atoms[join.left].table, join.left_column)] = None
        found[Frequency(query.atoms[join.atom].table, join.column)] = None
    return list(found)


def elastic_sensitivity(
    query: Query, frequencies: Mapping[Frequency, int], weights: Weights
) -> Bound:
    """ES = max over k of w[k] * S(k); a frequency that is absent raises KeyError."""
    plan = _plan(query)
    best = Bound()
    # S is a maximum of polynomials whose degree is below the number of atoms.
    for k in range(last_useful(len(plan), weights) + 1):
        value = weights[k] * stability(query, frequencies, k, plan)
        if value > best.value:
            best = Bound(value, k)
    return best


def stability(
    query: Query,
    frequencies: Mapping[Frequency, int],
    k: int,
    plan: tuple[_Join, ...] | None = None,
) -> int:
    """S(k): how far the count of a database at distance k can move in one step, by FLEX's rules."""
    atoms = query.atoms

    def frequency(atom: int, column: str) -> int:
        table = atoms[atom].table
        return frequencies[Frequency(table, column)] + (k if table.private else 0)

    # How often a row of atom i can repeat in the join so far, whichever column is asked for.
    repeats = {0: 1}
    moved = int(atoms[0].table.private)
    seen = {atoms[0].table.identity}
    for join in _plan(query) if plan is None else plan:
        left = frequency(join.left, join.left_column) * repeats[join.left]
        right = frequency(join.atom, join.column)
        own = int(atoms[join.atom].table.private)
        table = atoms[join.atom].table.identity
        if table in seen:
            moved = left * own + right * moved + moved * own
        else:
            moved = max(left * own, right * moved)
        repeats = {atom: factor * right for atom, factor in repeats.items()}
        repeats[join.atom] = left
        seen.add(table)
    return moved


def _plan(query: Query) -> tuple[_Join, ...]:
    """Each atom after the first joins by one equality: its first column shared with earlier atoms.

    Further equalities between the two sides are conditions on the result, which FLEX ignores.
    """
    places: dict[Variable, tuple[int, str]] = {}
    joins = []
    for position, atom in enumerate(query.atoms):
        if position:
            joins.append(_join(position, atom, places))
        for column, term in atom.terms:
            if isinstance(term, Variable):
                places.setdefault(term, (position, column))
    return tuple(joins)


def _join(position: int, atom: Atom, places: Mapping[Variable, tuple[int, str]]) -> _Join:
    for column, term in atom.terms:
        if isinstance(term, Variable) and term in places:
            left, left_column = places[term]
            return _Join(position, left, left_column, column)
    raise refusal(
        "elastic_unsupported",
        f"elastic sensitivity cannot join {atom.alias}: no equality links it to a table before it",
    )
