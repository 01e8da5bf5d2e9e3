"""Sums over one join, side by side: queries that differ in their weights alone are read once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlrs.catalog import Column, Table
from sqlrs.query import Query
from sqlrs.records import dataclass
from sqlrs.trees.naming import free_name

Identity = tuple[str | None, str]


@dataclass(frozen=True)
class SideBySide:
    """The query without weights, its tables with those of all queries, and who has which.

    ``weights``: for each query the alias and the column of each weight, none for a count.
    """

    query: Query
    weights: tuple[tuple[tuple[str, str], ...], ...]

    @classmethod
    def of(cls, queries: Sequence[Query]) -> SideBySide | None:
        """The queries as one; None where they differ in more than their weights."""
        bare = [_without_weights(query) for query in queries]
        first = bare[0]
        if first is None or first.distinct is not None or any(one != first for one in bare):
            return None
        added: dict[Identity, dict[str, Column]] = {}
        tables = {atom.table.identity: atom.table for atom in first.atoms}
        weights = tuple(
            tuple(
                (atom.alias, _added(atom.table.column(atom.weight.column), atom.table, added))
                for atom in query.atoms
                if atom.weight is not None
            )
            for query in queries
        )
        extended = {
            identity: table.with_computed(added.get(identity, {}).values())
            for identity, table in tables.items()
        }
        atoms = tuple(replace(one, table=extended[one.table.identity]) for one in first.atoms)
        return cls(replace(first, atoms=atoms), weights)

    @classmethod
    def with_count(cls, query: Query) -> SideBySide | None:
        """A count of the query's results, then its sum."""
        alone = cls.of([query])
        return None if alone is None else replace(alone, weights=((), *alone.weights))

    def columns(self, alias: str) -> frozenset[str]:
        """The weights that rows of an atom have, of all queries."""
        return frozenset(name for own in self.weights for at, name in own if at == alias)


def _added(column: Column, table: Table, added: dict[Identity, dict[str, Column]]) -> str:
    """The name of a weight among those of all queries; equal ones are one column."""
    if column.computed is None:
        return column.name
    known = added.setdefault(table.identity, {})
    for name, other in known.items():
        if replace(other, name=column.name) == column:
            return name
    taken = {*(one.name.lower() for one in table.columns if one != column), *known}
    name = free_name(column.name, taken)
    known[name] = replace(column, name=name)
    return name


def _without_weights(query: Query) -> Query | None:
    """The query of a count over tables that lack the computed weights; None if it needs them."""
    names: dict[Identity, set[str]] = {}
    for atom in query.atoms:
        if atom.weight is not None:
            names.setdefault(atom.table.identity, set()).add(atom.weight.column)
    atoms = []
    for atom in query.atoms:
        dropped = names.get(atom.table.identity, set())
        bare = replace(atom, weight=None)
        if dropped & bare.reads:
            return None
        atoms.append(replace(bare, table=_lacking(atom.table, dropped)))
    return replace(query, atoms=tuple(atoms))


def _lacking(table: Table, names: Iterable[str]) -> Table:
    dropped = set(names)
    kept = (one for one in table.columns if one.computed is None or one.name not in dropped)
    return replace(table, columns=tuple(kept))
