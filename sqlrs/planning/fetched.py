"""Query -> the same query over tables of the rows and columns alone that it joins and compares.

Where a database is far away and its tables are small, these are fetched and joined here. What is
asked of the rows of one table stays where the rows are: conditions, constants, computed columns,
comparisons within a row. Only values that meet those of other rows do so here, and only where they
are of types that mean the same in both databases. docs/proofs/plans.md, section 14.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import date

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.query import Atom, Comparison, Constant, Predicate, Query, Term, Variable
from sqlrs.records import dataclass

# Each value is the same bytes or the same number there and here; NULL is joined with nothing.
_EQUAL = frozenset({Family.INTEGER, Family.DATE, Family.BOOLEAN, Family.TEXT})
_ORDERED = frozenset({Family.INTEGER, Family.DATE})
_BYTES = "BLOB"

Side = str | Constant


@dataclass(frozen=True)
class InRow:
    """left < right (strict) or left ≤ right; a side is a column of the row, or a constant."""

    left: Side
    right: Side
    strict: bool


@dataclass(frozen=True)
class FetchedTable:
    """The rows of a table that satisfy the conditions of an atom, as a table of their own."""

    table: Table
    source: Atom
    compared: frozenset[InRow] = frozenset()

    @property
    def texts(self) -> frozenset[str]:
        """The columns whose values are texts, which come as their bytes."""
        return frozenset(c.name for c in self.table.columns if c.type.family is Family.TEXT)


@dataclass(frozen=True)
class FetchedQuery:
    """A query with the same count, and the same T_E for the same atoms, over fetched tables."""

    query: Query
    tables: tuple[FetchedTable, ...]


def fetched_query(query: Query, name: Callable[[FetchedTable], str]) -> FetchedQuery | None:
    """None where there is nothing to join, or a value may behave otherwise in another database.

    ``name``: what a table is called there. Tables of one name must have the same rows and columns.
    """
    if len(query.atoms) < 2 or query.generals:
        return None
    in_rows = _within_rows(query)
    rest = query.comparisons - in_rows
    used = _used_elsewhere(query, rest)
    compared = [_compared(atom, in_rows) for atom in query.atoms]
    atoms = [_without(atom, used) for atom in query.atoms]
    terms = (term for one in rest for term in (one.left, one.right))
    if not all(map(_alike, atoms)) or not all(map(_ordered_alike, terms)):
        return None
    rows = [(_rows_of(atom), conditions) for atom, conditions in zip(atoms, compared, strict=True)]
    groups: dict[tuple[Hashable, frozenset[InRow]], list[Atom]] = {}
    for atom, own in zip(atoms, rows, strict=True):
        groups.setdefault(own, []).append(atom)
    tables = {own: _table(alike, own[1], name) for own, alike in groups.items()}
    over = (_over(tables[own].table, atom) for atom, own in zip(atoms, rows, strict=True))
    found = replace(query, atoms=tuple(over), comparisons=rest)
    return FetchedQuery(found, tuple(tables.values()))


def _within_rows(query: Query) -> frozenset[Comparison]:
    """The comparisons that a residual keeps exactly where it has a row with their variables.

    What one of them says of a variable that another comparison ties to other rows is kept for them.
    """
    found = frozenset(
        one
        for one in query.comparisons
        if len(one.variables) == 1
        or sum(bool(one.variables & atom.variables) for atom in query.atoms) == 1
    )
    while tied := _tied(query.comparisons - found, found):
        found -= tied
    return found


def _tied(rest: Iterable[Comparison], among: Iterable[Comparison]) -> frozenset[Comparison]:
    """Those that are about a variable of the rest."""
    variables = frozenset[Variable]().union(*(one.variables for one in rest))
    return frozenset(one for one in among if one.variables & variables)


def _compared(atom: Atom, comparisons: frozenset[Comparison]) -> frozenset[InRow]:
    """The comparisons within a row of the atom, by its columns; equal columns say the same."""
    places = {term: name for name, term in reversed(atom.terms) if isinstance(term, Variable)}

    def side(term: Term) -> Side:
        return places[term] if isinstance(term, Variable) else term

    return frozenset(
        InRow(side(one.left), side(one.right), one.strict)
        for one in comparisons
        if one.variables <= places.keys()
    )


def _used_elsewhere(query: Query, comparisons: frozenset[Comparison]) -> frozenset[Variable]:
    """The variables whose values are needed beyond a row that holds them, or twice in it."""
    held = Counter(t for atom in query.atoms for _, t in atom.terms if isinstance(t, Variable))
    joined = frozenset(variable for variable, times in held.items() if times > 1)
    predicates: tuple[Predicate, ...] = (*query.inequalities, *comparisons)
    return joined.union(query.distinct or (), *(one.variables for one in predicates))


def _without(atom: Atom, used: frozenset[Variable]) -> Atom:
    """The atom without columns that were compared within its rows and are needed no more."""
    keys = frozenset[str]().union(*atom.table.keys)
    terms = tuple(
        (name, term)
        for name, term in atom.terms
        if not isinstance(term, Variable) or term in used or name in keys
    )
    return replace(atom, terms=terms)


def _alike(atom: Atom) -> bool:
    """Whether all values that leave the table mean the same elsewhere."""
    names = _columns(atom)
    kinds = [atom.table.column(name).type for name in names]
    weight = None if atom.weight is None else atom.table.column(atom.weight.column).type
    constant = {name for name, term in atom.terms if isinstance(term, Constant)}
    return (
        bool(names)
        and all(kind.family in _EQUAL and kind.collation is None for kind in kinds)
        and (weight is None or weight.family is Family.INTEGER)
        # Of such rows there is one at most, and no column is left to say so.
        and not any(key <= constant for key in atom.table.keys)
    )


def _ordered_alike(term: Term) -> bool:
    """Whether a side of a comparison lies between the same values elsewhere."""
    if isinstance(term, Constant) and type(term.value) not in (int, date):
        return False
    return term.type.family in _ORDERED


def _columns(atom: Atom) -> list[str]:
    """The columns whose values leave the table: those of variables, and the weight."""
    names = [name for name, term in atom.terms if isinstance(term, Variable)]
    return names if atom.weight is None else [*names, atom.weight.column]


def _rows_of(atom: Atom) -> Hashable:
    """What two atoms have in common that read the same rows."""
    constants = frozenset((name, term) for name, term in atom.terms if isinstance(term, Constant))
    return atom.table.identity, frozenset(atom.filters), constants


def _table(
    atoms: Sequence[Atom], compared: frozenset[InRow], name: Callable[[FetchedTable], str]
) -> FetchedTable:
    first = atoms[0]
    wanted = {column for atom in atoms for column in _columns(atom)}
    described = first.table
    columns = tuple(_column(one) for one in described.columns if one.name in wanted)
    constant = {name for name, term in first.terms if isinstance(term, Constant)}
    table = Table(
        described.name,
        columns,
        keys=frozenset(key - constant for key in described.keys),
        private=described.private,
    )
    found = FetchedTable(table, first, compared)
    return replace(found, table=replace(table, name=name(found)))


def _column(described: Column) -> Column:
    kind = described.type
    if kind.family is Family.TEXT:
        # A text may hold bytes that are no characters, which another database would not read.
        kind = ColumnType(Family.TEXT, _BYTES)
    return Column(described.name, kind, described.nullable)


def _over(table: Table, atom: Atom) -> Atom:
    terms = tuple((name, term) for name, term in atom.terms if isinstance(term, Variable))
    return Atom(atom.alias, table, terms, weight=atom.weight)
