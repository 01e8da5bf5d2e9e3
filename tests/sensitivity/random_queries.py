"""Random conjunctive queries with keys, predicates and projection, each with a random instance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from hypothesis import strategies as st

from sqlrs.catalog import Column, Table
from sqlrs.query import Atom, Query, Weight, closure
from tests.sensitivity.exhaustive import Rows, Shape
from tests.support import brute
from tests.support.builders import INTEGER, Side, atom, query, table


@dataclass(frozen=True)
class Case:
    """A query and the instance whose neighbours are tried."""

    shape: Shape
    database: Mapping[str, Rows]


@st.composite
def cases(draw: st.DrawFn, most_atoms: int = 4) -> Case:
    tables = [draw(_tables(name)) for name in "rst"[: draw(st.integers(1, 3))]]
    if not any(t.private for t in tables):
        tables = [table("r", "a", "b"), *tables[1:]]
    names = [f"v{i}" for i in range(draw(st.integers(1, 5)))]
    atoms = draw(st.lists(_atoms(tables, names), min_size=2, max_size=most_atoms))
    if not any(a.table.private for a in atoms):
        private = next(t for t in tables if t.private)
        atoms.append(atom(private, *names[:1] * len(private.columns)))
    asked = draw(_queries(atoms))
    most = 2 if len(asked.atoms) > 3 else 3
    values = range(draw(st.integers(2, 3)))
    shape = Shape("random", asked, values=tuple(values), most=most, decays=(Fraction(2, 3),))
    database = {t.label: tuple(draw(_contents(shape, t))) for t in shape.tables}
    return Case(shape, database)


@st.composite
def _tables(draw: st.DrawFn, name: str) -> Table:
    columns = "abc"[: draw(st.integers(1, 3))]
    keys = draw(
        st.lists(st.sets(st.sampled_from(columns), min_size=1), max_size=2, unique_by=tuple)
    )
    return table(
        name, *columns, keys=[" ".join(sorted(k)) for k in keys], private=draw(_mostly(True))
    )


def _mostly(value: bool) -> st.SearchStrategy[bool]:
    return st.integers(0, 3).map(lambda n: value if n else not value)


@st.composite
def _atoms(draw: st.DrawFn, tables: list[Table], names: list[str]) -> Atom:
    of = draw(st.sampled_from(tables))
    term = st.one_of(*[st.sampled_from(names)] * 5, st.integers(0, 1))
    return atom(of, *(draw(term) for _ in of.columns))


Drawn = TypeVar("Drawn")


@st.composite
def _queries(draw: st.DrawFn, atoms: list[Atom]) -> Query:
    names = sorted({v.name for a in atoms for v in a.variables})
    pairs = [(x, y) for x in names for y in names if x < y]
    ordered: list[tuple[Side, Side]] = [(x, y) for x in names for y in names if x != y]
    ordered += [(x, 1) for x in names]

    def some(items: list[Drawn], most: int) -> list[Drawn]:
        return draw(st.lists(st.sampled_from(items), max_size=most)) if items else []

    compared = draw(st.booleans())
    distinct = " ".join(draw(st.sets(st.sampled_from(names)))) if names else ""
    return query(
        *atoms,
        different=[" ".join(p) for p in some(pairs, 3)],
        less=some(ordered, 2) if compared else [],
        at_most=some(ordered, 2) if compared else [],
        general=[(lambda x, y: x + y < 2, " ".join(p)) for p in some(pairs, 1)],
        distinct=distinct if distinct and not draw(_mostly(True)) else None,
    )


@st.composite
def _contents(draw: st.DrawFn, shape: Shape, of: Table) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for row in draw(st.lists(st.sampled_from(list(shape.rows(of))), max_size=shape.most)):
        if brute.keys_hold(of, [*rows, row]):
            rows.append(row)
    return rows


@st.composite
def weighted_cases(draw: st.DrawFn) -> Case:
    """A random query whose tables have one more column, which some of its atoms sum."""
    case = draw(cases(most_atoms=3))
    tables = {t.label: _with_weight(t) for t in case.shape.tables}
    asked = case.shape.query
    able = asked.everything
    if asked.distinct is not None:
        # A DISTINCT result has one weight only where its output decides the row.
        able = closure(asked, asked.everything, asked.distinct)[1]
    chosen = draw(st.sets(st.sampled_from(sorted(able)), min_size=1)) if able else set[int]()
    atoms = [replace(a, table=tables[a.table.label]) for a in asked.atoms]
    for i in chosen:
        atoms[i] = replace(atoms[i], weight=Weight("w", draw(st.sampled_from((2, 2, 3, 5)))))
    weight = st.sampled_from((0, 1, 2, 2))

    def rows(of: Iterable[tuple[object, ...]]) -> tuple[tuple[object, ...], ...]:
        return tuple((*row, draw(weight)) for row in of)

    universe = {
        t.label: rows(draw(st.lists(st.sampled_from(list(case.shape.rows(t))), max_size=6)))
        for t in case.shape.tables
    }
    # A table whose universe is empty would get every row of its columns.
    universe = {
        label: found or ((0,) * len(tables[label].columns),) for label, found in universe.items()
    }
    shape = replace(case.shape, query=replace(asked, atoms=tuple(atoms)), universe=universe)
    return Case(shape, {label: rows(own) for label, own in case.database.items()})


def _with_weight(of: Table) -> Table:
    return replace(of, columns=(*of.columns, Column("w", INTEGER, nullable=False)))
