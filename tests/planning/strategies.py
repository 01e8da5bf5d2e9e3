"""Random queries, data and statistics on which every plan must agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.planning.statistics import Repetition, Statistics
from sqlrs.query import Atom, Comparison, Constant, Filter, General, Inequality, Query, Variable
from sqlrs.residuals import Residual, Residuals
from tests.builders import INTEGER, table

TABLES = (
    table("keyed", "p", "q", keys=["p q"]),
    table("bag", "p", "q", nullable="p q"),
    table("wide", "id", "p", "q", keys=["id"], nullable="p q"),
    table("open_data", "p", "q", private=False, nullable="q"),
)
VALUES = st.one_of(st.none(), st.integers(0, 3))
NAMES = "abcde"


@dataclass(frozen=True)
class Case:
    """A residual, the rows of every table, and statistics that may be nonsense."""

    residual: Residual
    rows: dict[str, list[tuple[object, ...]]]
    statistics: Statistics | None


@st.composite
def cases(draw: st.DrawFn, most_atoms: int = 4) -> Case:
    query = draw(queries(most_atoms))
    residuals = Residuals(query)
    members = draw(st.sets(st.sampled_from(sorted(query.everything)), min_size=1))
    residual = residuals.of(frozenset(members))
    if residual.external:
        residual = residuals.of(query.everything)
    return Case(
        residual,
        {t.name: draw(rows_of(t)) for t in TABLES},
        draw(st.one_of(st.none(), statistics())),
    )


@st.composite
def queries(draw: st.DrawFn, most_atoms: int = 4) -> Query:
    atoms = tuple(
        draw(atoms_named(f"t{i}")) for i in range(1, draw(st.integers(1, most_atoms)) + 1)
    )
    names = sorted(frozenset[Variable]().union(*(a.variables for a in atoms)))
    inequalities, comparisons, generals = set(), set(), []
    if len(names) > 1:
        pairs = st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)
        inequalities = {Inequality.between(*p) for p in draw(st.lists(pairs, max_size=5))}
        if draw(st.integers(0, 3)) == 0:
            low, high = draw(pairs)
            comparisons.add(Comparison(low, high, draw(st.booleans())))
        if draw(st.integers(0, 5)) == 0:
            generals.append(General(draw(conditions(2)), tuple(draw(pairs))))
    if names and draw(st.integers(0, 5)) == 0:
        comparisons.add(Comparison(draw(st.sampled_from(names)), Constant(2, INTEGER), False))
    distinct = None
    if names and draw(st.integers(0, 3)) == 0:
        distinct = frozenset(draw(st.sets(st.sampled_from(names), min_size=1)))
    return Query(atoms, frozenset(inequalities), frozenset(comparisons), tuple(generals), distinct)


@st.composite
def atoms_named(draw: st.DrawFn, alias: str) -> Atom:
    of = draw(st.sampled_from(TABLES))
    terms = []
    for column in of.columns:
        in_key = any(column.name in key for key in of.keys)
        kind = draw(st.integers(0, 9))
        if kind == 0:
            terms.append((column.name, Constant(draw(st.integers(0, 2)), INTEGER)))
        elif kind > 1 or in_key:
            terms.append((column.name, Variable(draw(st.sampled_from(NAMES)), INTEGER)))
    filters = ()
    if draw(st.integers(0, 5)) == 0:
        column = exp.column(draw(st.sampled_from(of.columns)).name)
        test = draw(
            st.sampled_from(
                [exp.LT(this=column, expression=exp.Literal.number(2)), column.is_(exp.null())]
            )
        )
        filters = (Filter(test, frozenset({column.name})),)
    return Atom(alias, of, tuple(terms), filters)


def conditions(arguments: int) -> st.SearchStrategy[exp.Expression]:
    """General predicates; one of them is true where an argument is NULL."""
    v0, v1 = (exp.Placeholder(this=f"v{i}") for i in range(arguments))
    odd: Callable[[exp.Expression], exp.Expression] = lambda e: exp.EQ(  # noqa: E731
        this=exp.Mod(this=exp.paren(e), expression=exp.Literal.number(2)),
        expression=exp.Literal.number(1),
    )
    total = exp.Add(this=v0.copy(), expression=v1.copy())
    return st.sampled_from(
        [
            odd(total),
            exp.or_(v0.copy().is_(exp.null()), exp.LT(this=v0.copy(), expression=v1.copy())),
        ]
    )


@st.composite
def rows_of(draw: st.DrawFn, of: Table) -> list[tuple[object, ...]]:
    row = st.tuples(*(VALUES if c.nullable else st.integers(0, 3) for c in of.columns))
    if of.keys:
        [key] = of.keys
        places = [i for i, c in enumerate(of.columns) if c.name in key]
        return draw(st.lists(row, max_size=9, unique_by=lambda r: tuple(r[i] for i in places)))
    return draw(st.lists(row, max_size=9))


@st.composite
def statistics(draw: st.DrawFn) -> Statistics:
    sizes = st.sampled_from([1.0, 50.0, 1e4, 1e7])
    rows = {t.identity: draw(sizes) for t in TABLES}
    columns = {}
    for t in TABLES:
        for c in t.columns:
            n = rows[t.identity]
            columns[t.identity, c.name] = draw(
                st.sampled_from(
                    [
                        Repetition.unique(n),
                        Repetition.guessed(n),
                        Repetition(max(n / 100, 1.0), n * 100, min(n, 5000.0)),
                        Repetition(1.0, n * n, n),
                    ]
                )
            )
    return Statistics(rows, columns)
