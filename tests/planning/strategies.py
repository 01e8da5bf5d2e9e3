"""Random queries, data and statistics on which every plan must agree."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import (
    Atom,
    Comparison,
    Constant,
    Filter,
    General,
    Inequality,
    Query,
    Term,
    Variable,
)
from sqlrs.residuals.residual import Residual, Residuals
from tests.support.builders import INTEGER, table
from tests.support.special import Line
from tests.support.weights import COLUMNS, cells, weighed

NUMBERS = Line(INTEGER, ())
NAMES = "abcde"


def tables(line: Line) -> tuple[Table, ...]:
    """The tables, all their columns of one type but for those of weights."""
    types = dict.fromkeys(("p", "q", "id"), line.type)
    return (
        table("keyed", "p", "q", *COLUMNS, keys=["p q"], types=types),
        table("bag", "p", "q", *COLUMNS, nullable="p q", types=types),
        table("wide", "id", "p", "q", *COLUMNS, keys=["id"], nullable="p q", types=types),
        table("open_data", "p", "q", *COLUMNS, private=False, nullable="q", types=types),
    )


TABLES = tables(NUMBERS)


@dataclass(frozen=True)
class Case:
    """A residual, the rows of every table, and statistics that may be nonsense."""

    residual: Residual
    rows: dict[str, list[tuple[object, ...]]]
    statistics: Statistics | None


@st.composite
def cases(draw: st.DrawFn, most_atoms: int = 4, line: Line = NUMBERS) -> Case:
    """A case whose values are small numbers, or the special ones of a line."""
    query = draw(queries(most_atoms, line))
    residuals = Residuals(query)
    members = draw(st.sets(st.sampled_from(sorted(query.everything)), min_size=1))
    residual = residuals.of(frozenset(members))
    if residual.external:
        residual = residuals.of(query.everything)
    return Case(
        residual,
        {t.name: draw(rows_of(t, line)) for t in tables(line)},
        draw(st.one_of(st.none(), statistics())),
    )


@st.composite
def queries(draw: st.DrawFn, most_atoms: int = 4, line: Line = NUMBERS) -> Query:
    atoms = tuple(
        draw(atoms_named(f"t{i}", line)) for i in range(1, draw(st.integers(1, most_atoms)) + 1)
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
            generals.append(General(draw(conditions(2, line)), tuple(draw(pairs))))
    if names and not line.values and draw(st.integers(0, 5)) == 0:
        comparisons.add(Comparison(draw(st.sampled_from(names)), Constant(2, INTEGER), False))
    distinct = None
    if draw(st.booleans()):
        atoms = draw(weighed(atoms))
    elif names and draw(st.integers(0, 3)) == 0:
        distinct = frozenset(draw(st.sets(st.sampled_from(names), min_size=1)))
    return Query(atoms, frozenset(inequalities), frozenset(comparisons), tuple(generals), distinct)


@st.composite
def distinct_outputs(draw: st.DrawFn, of: Query) -> Query:
    """The query with distinct outputs, mostly a key, and often a condition across the rows of it.

    Rows that a key decides are counted once: others are their witnesses, and a condition ties both.
    """
    atoms = tuple(replace(one, weight=None) for one in of.atoms)
    names = sorted(frozenset[Variable]().union(*(one.variables for one in atoms)))
    output = frozenset(draw(st.sets(st.sampled_from(names), max_size=1))) if names else frozenset()
    keys = [key for one in atoms for key in sorted(one.keys, key=sorted)]
    if keys:
        output |= draw(st.sampled_from(keys))
    near = frozenset[Variable]().union(*(a.variables for a in atoms if output & a.variables))
    inequalities, comparisons = of.inequalities, of.comparisons
    if near and (far := [v for v in names if v not in near]) and draw(st.booleans()):
        tie = draw(st.sampled_from(sorted(near))), draw(st.sampled_from(far))
        if draw(st.booleans()):
            inequalities |= {Inequality.between(*tie)}
        else:
            comparisons |= {Comparison(*tie, draw(st.booleans()))}
    return Query(atoms, inequalities, comparisons, of.generals, output or None)


@st.composite
def atoms_named(draw: st.DrawFn, alias: str, line: Line = NUMBERS) -> Atom:
    of = draw(st.sampled_from(tables(line)))
    terms: list[tuple[str, Term]] = []
    for column in of.columns:
        if column.name in COLUMNS:
            if not line.values and draw(st.integers(0, 7)) == 0:
                terms.append((column.name, Variable(draw(st.sampled_from(NAMES)), column.type)))
            continue
        in_key = any(column.name in key for key in of.keys)
        kind = draw(st.integers(0, 9))
        if kind == 0 and not line.values:
            terms.append((column.name, Constant(draw(st.integers(0, 2)), INTEGER)))
        elif kind > 1 or in_key:
            terms.append((column.name, Variable(draw(st.sampled_from(NAMES)), line.type)))
    filters: tuple[Filter, ...] = ()
    if draw(st.integers(0, 5)) == 0:
        filtered = exp.column(draw(st.sampled_from(["p", "q"])))
        tests: list[exp.Expression] = [filtered.is_(exp.null())]
        if not line.values:
            tests.append(exp.LT(this=filtered, expression=exp.Literal.number(2)))
        test = draw(st.sampled_from(tests))
        filters = (Filter(test, frozenset({filtered.name})),)
    return Atom(alias, of, tuple(terms), filters)


def conditions(arguments: int, line: Line = NUMBERS) -> st.SearchStrategy[exp.Expression]:
    """General predicates; one of them is true where an argument is NULL."""
    v0, v1 = (exp.Placeholder(this=f"v{i}") for i in range(arguments))
    odd: Callable[[exp.Expression], exp.Expression] = lambda e: exp.EQ(  # noqa: E731
        this=exp.Mod(this=exp.paren(e), expression=exp.Literal.number(2)),
        expression=exp.Literal.number(1),
    )
    total = exp.Add(this=v0.copy(), expression=v1.copy())
    null_or_less = exp.or_(v0.copy().is_(exp.null()), exp.LT(this=v0.copy(), expression=v1.copy()))
    return st.sampled_from([null_or_less] if line.values else [odd(total), null_or_less])


def evaluate(condition: Hashable, values: object) -> bool:
    """Whether a condition of these strategies holds, as the brute-force oracle asks for it."""
    if isinstance(values, tuple):
        values = {f"v{i}": value for i, value in enumerate(values)}
    assert isinstance(condition, exp.Expression) and isinstance(values, dict)
    return _value(condition, values) is True


def _value(tree: exp.Expr, values: dict[str, Any]) -> Any:
    """SQL's value of a tree, None for NULL: only what `conditions` and filters are made of."""
    if isinstance(tree, exp.Column | exp.Placeholder):
        return values[tree.name]
    if isinstance(tree, exp.Literal):
        return int(tree.name)
    if isinstance(tree, exp.Paren):
        return _value(tree.this, values)
    if isinstance(tree, exp.Is):
        return _value(tree.this, values) is None
    left, right = _value(tree.this, values), _value(tree.args["expression"], values)
    if isinstance(tree, exp.Or):
        return True if True in (left, right) else (None if None in (left, right) else False)
    if left is None or right is None:
        return None
    return _OPERATORS[type(tree)](left, right)


_OPERATORS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.LT: operator.lt,
    exp.EQ: operator.eq,
    exp.Add: operator.add,
    exp.Mod: operator.mod,
}


@st.composite
def rows_of(draw: st.DrawFn, of: Table, line: Line = NUMBERS) -> list[tuple[object, ...]]:
    value = st.sampled_from(line.values) if line.values else st.integers(0, 3)
    row = st.tuples(
        *(
            cells(c.name) if c.name in COLUMNS else (st.none() | value if c.nullable else value)
            for c in of.columns
        )
    )
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
