"""A conjunctive query -> the same over rows that have owners, in which each owner is a term.

Chains of links that the query does not hold are joined in by keys, so that no result is counted
twice, and ids that may be NULL are not. Why a result then belongs to the units that its terms name,
and to no others: docs/proofs/owners.md.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiler.flat import not_null
from sqlrs.errors import UsageError
from sqlrs.query import Atom, Constant, Filter, Query, Term, Variable, closure
from sqlrs.records import dataclass
from sqlrs.trees.naming import free_name
from sqlrs.units import Link, Owner

MOST_ATOMS = 64
"""Chains that lead on and on, such as one of a table into itself, end here."""


@dataclass(frozen=True)
class OwnedQuery:
    """A query over rows that have owners; a result belongs to the units that ``owners`` hold."""

    query: Query
    owners: tuple[Term, ...]


class OwnersUnknown(ValueError):
    """The query has no such form; ``alias`` is the atom of the analyst's at fault."""

    def __init__(self, alias: str, code: str) -> None:
        super().__init__(f"{code} at {alias}")
        self.alias = alias
        self.code = code


def with_owners(query: Query, catalog: Catalog) -> OwnedQuery:
    """The query over the rows that have owners, these as its terms; or an OwnersUnknown.

    Of a DISTINCT query the owners join the output: it must decide them already.
    """
    return _Extension(query, catalog).owned()


class _Extension:
    """The atoms of a query while columns and atoms are added to them."""

    def __init__(self, query: Query, catalog: Catalog) -> None:
        self._query = query
        self._atoms = list(query.atoms)
        # Two atoms of one table share its description, computed columns included.
        self._tables: dict[tuple[str | None, str], Table] = {
            table.identity: table for table in (*catalog.tables, *query.tables)
        }
        self._for = [atom.alias for atom in query.atoms]
        self._aliases = {atom.alias.lower() for atom in query.atoms}
        self._names = {v.name for v in query.variables(query.everything)}

    def owned(self) -> OwnedQuery:
        owners: dict[Term, str] = {}
        at = 0
        # Those that are added are private too, and have owners: the list grows meanwhile.
        while at < len(self._atoms):
            table = self._atoms[at].table
            if table.private and not table.owners:
                raise OwnersUnknown(self._for[at], "no_owner")
            for owner in table.owners if table.private else ():
                place = at
                for link in owner.links:
                    place = self._linked(place, link)
                place = _first_of_row(self._atoms, place)
                owners.setdefault(self._term(place, owner.column), self._for[at])
            at += 1
        query = replace(self._query, atoms=tuple(self._atoms))
        query = replace(query, atoms=tuple(_never_null(a, owners, query) for a in query.atoms))
        if query.distinct is not None:
            known, _ = closure(query, query.everything, query.distinct)
            for owner_id, alias in owners.items():
                if isinstance(owner_id, Variable) and owner_id not in known:
                    raise OwnersUnknown(alias, "unit_lost")
            held = frozenset(term for term in owners if isinstance(term, Variable))
            query = replace(query, distinct=query.distinct | held)
        return OwnedQuery(query, tuple(owners))

    def _linked(self, at: int, link: Link) -> int:
        """The position of the atom that the link of another one leads to."""
        table = self._tables[link.table]
        if not any(key <= set(link.key) for key in table.keys):
            raise UsageError(
                f"({', '.join(link.key)}) is no key of {table.label}, through which "
                f"{self._atoms[at].table.label} has its owners",
                hint="declare it as a key, or name the columns of another one",
            )
        wanted = {
            key: self._term(at, column) for column, key in zip(link.columns, link.key, strict=True)
        }
        for key, term in wanted.items():
            if not table.column(key).type.joins_with(term.type):
                raise UsageError(
                    f"{self._atoms[at].table.label} has its owners through {table.label}.{key}, "
                    "whose type is another one",
                    hint="let both columns have one type",
                )
        found = _held(self._atoms, link, wanted)
        if found is not None:
            return found
        if len(self._atoms) >= MOST_ATOMS:
            raise OwnersUnknown(self._for[at], "too_complex")
        alias = free_name(f"{table.name}_of_{self._atoms[at].alias}", self._aliases)
        keys = frozenset(wanted).union(*table.keys)
        terms = tuple(
            (column.name, wanted.get(column.name) or self._fresh(alias, table, column.name))
            for column in table.columns
            if column.name in keys
        )
        self._atoms.append(Atom(alias, table, terms))
        self._for.append(self._for[at])
        return len(self._atoms) - 1

    def _term(self, at: int, column: str) -> Term:
        """What a column of an atom holds, which is a term from now on."""
        atom = self._atoms[at]
        terms = dict(atom.terms)
        if column not in terms:
            terms[column] = self._fresh(atom.alias, atom.table, column)
            ordered = ((c.name, terms[c.name]) for c in atom.table.columns if c.name in terms)
            self._atoms[at] = replace(atom, terms=tuple(ordered))
        return terms[column]

    def _fresh(self, alias: str, table: Table, column: str) -> Variable:
        name, number = f"{alias}.{column}", 1
        while name in self._names:
            number += 1
            name = f"{alias}.{column}#{number}"
        self._names.add(name)
        return Variable(name, table.column(column).type)


def owner_words(query: Query, owners: tuple[Term, ...], unit: str) -> str:
    """Which units a result of an owned query belongs to, and by which columns, in words."""
    if not owners:
        return "no result belongs to a unit: only public tables are read"
    through: dict[Term, dict[str, None]] = {}
    for atom in query.atoms:
        for owner in atom.table.owners if atom.table.private else ():
            term, path = _path(query, atom, owner)
            through.setdefault(term, {})[path] = None
    ways = [f"{unit} through {' and '.join(through[term])}" for term in owners]
    if len(owners) == 1:
        return f"each result belongs to one unit: {ways[0]}"
    return f"each result belongs to up to {len(owners)} units: {'; '.join(ways)}"


def _path(query: Query, atom: Atom, owner: Owner) -> tuple[Term, str]:
    """The id at the end of the links of an owned query's atom, and the columns that lead there."""
    steps = []
    for link in owner.links:
        steps.append(f"{atom.table.label}.{', '.join(link.columns)}")
        terms = dict(atom.terms)
        wanted = {k: terms[c] for c, k in zip(link.columns, link.key, strict=True)}
        place = _held(query.atoms, link, wanted)
        if place is None:
            raise ValueError("the query does not hold the chains of its owners")
        atom = query.atoms[place]
    steps.append(f"{atom.table.label}.{owner.column}")
    first = query.atoms[_first_of_row(query.atoms, query.atoms.index(atom))]
    return dict(first.terms)[owner.column], " → ".join(steps)


def _held(atoms: tuple[Atom, ...] | list[Atom], link: Link, wanted: dict[str, Term]) -> int | None:
    """The first atom of the linked table with these terms: by its key, the very row."""
    for position, atom in enumerate(atoms):
        terms = dict(atom.terms)
        if atom.table.identity == link.table and all(
            terms.get(key) == term for key, term in wanted.items()
        ):
            return position
    return None


def _first_of_row(atoms: tuple[Atom, ...] | list[Atom], place: int) -> int:
    """The first atom that holds the same row as this one, by a key: its id stands for both."""
    table, terms = atoms[place].table, dict(atoms[place].terms)
    for position, atom in enumerate(atoms[:place]):
        others = dict(atom.terms)
        if atom.table == table and any(
            all(others[column] == terms[column] for column in key) for key in table.keys
        ):
            return position
    return place


def _never_null(atom: Atom, owners: dict[Term, str], query: Query) -> Atom:
    """The atom without rows whose id is NULL; a constant, a join or a comparison sees to others."""
    missing = [
        column
        for column, term in atom.terms
        if term in owners
        and not isinstance(term, Constant)
        and term not in query.never_null
        and atom.table.column(column).nullable
    ]
    added = [
        Filter(not_null(exp.column(column, quoted=True)), frozenset({column})) for column in missing
    ]
    # Before all others: those that can fail stand last.
    return replace(atom, filters=(*(f for f in added if f not in atom.filters), *atom.filters))
