"""Random queries of tables that are joined by keys, with rows: chains, stars, branches that meet.

One table comes first and names rows of others by their keys, which name further ones. A column may
also be one that is known already: two branches meet there. Each type has its odd values: NULL in
all that is no key, -0.0 beside 0.0, NaN and infinities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.query import Atom, Comparison, Filter, Inequality, Query, Term, Variable
from tests.support.builders import INTEGER, TEXT
from tests.support.special import ORIGIN, Special
from tests.support.weights import COLUMNS, cells, weighed

Row = tuple[object, ...]

REAL = ColumnType(Family.FLOAT, "DOUBLE")
DATE = ColumnType(Family.DATE, "DATE")
_REALS = {"-inf": 0, "-0.0": 1, "0.0": 1, "1.5": 2, "inf": 3, "nan": 4}
_VALUES: dict[ColumnType, Sequence[object]] = {
    INTEGER: range(4),
    TEXT: ("", "A", "a", "b"),
    DATE: [ORIGIN.replace(day=day) for day in (1, 2, 28, 29)],
    REAL: [Special(text, place, False) for text, place in _REALS.items()],
}
# Whole numbers mostly, of which conditions can ask more.
_TYPES = (INTEGER, INTEGER, INTEGER, TEXT, DATE, REAL)
_MOST_ROWS = 7


@dataclass(frozen=True)
class Joined:
    """A query and the rows of its tables."""

    query: Query
    rows: dict[str, list[Row]]

    @property
    def tables(self) -> tuple[Table, ...]:
        """Each table once; an atom may read one that another has read."""
        return tuple({atom.table.name: atom.table for atom in self.query.atoms}.values())


@st.composite
def joined_by_keys(draw: st.DrawFn) -> Joined:
    """Two to four atoms."""
    first = _first(draw)
    atoms = [first]
    for number in range(1, draw(st.sampled_from([3, 2, 1])) + 1):
        atoms.append(_named_by(draw, atoms, number))
    if draw(st.integers(0, 5)) == 0:
        atoms = [*draw(weighed(atoms))]
    atoms = [_filtered(draw, one) for one in atoms]
    query = _compared(draw, atoms)
    tables = {atom.table.name: atom.table for atom in atoms}
    return Joined(query, {name: draw(_rows_of(table)) for name, table in tables.items()})


def _first(draw: st.DrawFn) -> Atom:
    """The table that comes first: what it names, and a number that tells its rows apart."""
    kinds = draw(st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3))
    terms = [(f"c{i}", Variable(f"v{i}", kind)) for i, kind in enumerate(kinds)]
    # In its key the number stands beside what many rows have in common, or alone, or not at all.
    key = draw(st.sampled_from([frozenset({"c0", "id"}), frozenset({"id"}), None]))
    terms.append(("id", Variable("id", INTEGER)))
    return Atom("t0", _table("first", [*terms], key), tuple(terms))


def _named_by(draw: st.DrawFn, before: Sequence[Atom], number: int) -> Atom:
    """A row that earlier ones name by its key; sometimes of a table that is read already."""
    known = sorted(frozenset[Variable]().union(*(atom.variables for atom in before)))
    by = draw(st.sampled_from([v for v in known if v.name != "id"]))
    again = [atom for atom in before[1:] if atom.terms[0][1] != by and _fits(atom, by)]
    if again and draw(st.integers(0, 2)) == 0:
        model = draw(st.sampled_from(again))
        kinds = [column.type for column in model.table.columns if column.name not in COLUMNS][1:]
    else:
        model = None
        kinds = draw(st.lists(st.sampled_from(_TYPES), max_size=2))
    terms: list[tuple[str, Term]] = [("c0", by)]
    for i, kind in enumerate(kinds, 1):
        own = Variable(f"v{number}{i}", kind)
        taken = {term for _, term in terms}
        meeting = [v for v in known if v.type == kind and v not in taken and v.name != "id"]
        meets = bool(meeting) and draw(st.integers(0, 2)) == 0
        terms.append((f"c{i}", draw(st.sampled_from(meeting)) if meets else own))
    table = model.table if model else _table(f"named{number}", terms, frozenset({"c0"}))
    return Atom(f"t{number}", table, tuple(terms))


def _fits(atom: Atom, by: Variable) -> bool:
    return atom.table.columns[0].type == by.type


def _table(name: str, terms: Sequence[tuple[str, Term]], key: frozenset[str] | None) -> Table:
    columns = [
        Column(column, term.type, nullable=key is None or column not in key)
        for column, term in terms
        if isinstance(term, Variable)
    ]
    weights = [Column(column, INTEGER, nullable=False) for column in COLUMNS]
    return Table(name, (*columns, *weights), frozenset() if key is None else frozenset({key}))


def _filtered(draw: st.DrawFn, atom: Atom) -> Atom:
    """The atom, sometimes with a condition of its own."""
    if draw(st.integers(0, 4)) != 0:
        return atom
    name, term = draw(st.sampled_from(atom.terms))
    assert isinstance(term, Variable)
    column = exp.column(name)
    tests: list[exp.Expression] = [column.is_(exp.null())]
    if term.type == INTEGER:
        tests += [exp.LT(this=column.copy(), expression=exp.Literal.number(2))] * 3
    return replace(atom, filters=(Filter(draw(st.sampled_from(tests)), frozenset({name})),))


def _compared(draw: st.DrawFn, atoms: Sequence[Atom]) -> Query:
    """The query, sometimes with an inequality or a comparison, mostly within one atom."""
    inequalities, comparisons = set(), set()
    for _ in range(draw(st.integers(0, 2))):
        near = draw(st.sampled_from([*(atom.variables for atom in atoms), None]))
        among = near or frozenset[Variable]().union(*(atom.variables for atom in atoms))
        pairs = [(v, w) for v in sorted(among) for w in sorted(among) if v < w and v.type == w.type]
        if pairs:
            pair = draw(st.sampled_from(pairs))
            if draw(st.booleans()):
                inequalities.add(Inequality.between(*pair))
            else:
                comparisons.add(Comparison(*pair, draw(st.booleans())))
    return Query(tuple(atoms), frozenset(inequalities), frozenset(comparisons))


@st.composite
def _rows_of(draw: st.DrawFn, of: Table) -> list[Row]:
    cell = {
        column.name: cells(column.name)
        if column.name in COLUMNS
        else st.sampled_from([*_VALUES[column.type], *([None] if column.nullable else [])])
        for column in of.columns
    }
    row = st.tuples(*cell.values())
    # A size drawn first: left to themselves, lists are mostly short and joins mostly empty.
    size = draw(st.sampled_from([_MOST_ROWS] * 4 + [2, 0]))
    rows = draw(st.lists(row, min_size=size, max_size=size))
    for key in of.keys:
        places = [i for i, column in enumerate(of.columns) if column.name in key]
        rows = [*{tuple(one[i] for i in places): one for one in rows}.values()]
    return rows
