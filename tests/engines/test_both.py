"""The same statements on DuckDB and PostgreSQL: equal to each other and to brute force."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Catalog, ColumnType, Family, Table
from sqlrs.compiler.compile import compile_query
from sqlrs.query import Atom, Constant, Inequality, Query, Term, Variable
from sqlrs.residuals.residual import Reading, Residual, Residuals, subsets
from sqlrs.sql.plain import plain
from tests.support import brute, strategies
from tests.support.builders import atom, query, table
from tests.support.engine_fixtures import BothEngines
from tests.support.examples import examples
from tests.support.strategies import Draw, Features, TinyDatabase

# The variables of each type, and a constant that occurs.
_OF_FAMILY: dict[Family, tuple[str, int | str | date]] = {
    Family.INTEGER: ("xyz", 1),
    Family.TEXT: ("uv", "p"),
    Family.DATE: ("de", date(2024, 2, 29)),
}


@st.composite
def queries_as_values(draw: Draw, catalog: Catalog) -> Query:
    """Up to three atoms with shared and repeated variables, constants, inequalities, DISTINCT."""
    atoms = []
    for number in range(draw(st.sampled_from([3, 2, 1]))):
        of: Table = draw(st.sampled_from(catalog.tables))
        terms: list[tuple[str, Term]] = []
        for column in of.columns:
            kind, value = _OF_FAMILY[column.type.family]
            names = [Variable(name, column.type) for name in kind]
            terms.append(
                (
                    column.name,
                    draw(st.sampled_from([*names, *names, Constant(value, column.type)])),
                )
            )
        atoms.append(Atom(f"t{number}", of, tuple(terms)))
    used = sorted({v for a in atoms for v in a.variables})
    pairs = [(v, w) for v in used for w in used if v < w and v.type == w.type]
    different = draw(st.lists(st.sampled_from(pairs), max_size=2)) if pairs else []
    output = draw(st.none() | st.sets(st.sampled_from(used))) if used else None
    return Query(
        tuple(atoms),
        inequalities=frozenset(Inequality.between(v, w) for v, w in different),
        distinct=None if output is None else frozenset(output),
    )


@st.composite
def loaded_queries(draw: Draw) -> tuple[TinyDatabase, Query]:
    database = draw(strategies.databases())
    return database, draw(queries_as_values(database.catalog))


def every_residual(of: Query) -> list[Residual]:
    """All residuals, the query itself too, read so that none has external variables."""
    residuals = Residuals(of, Reading(exact_comparisons=False))
    return [residuals.of(members) for members in subsets(of.everything) if members]


def labelled(database: TinyDatabase) -> dict[str, list[Any]]:
    return {t.label: database.rows[t.identity] for t in database.catalog.tables}


@settings(max_examples=examples(20))
@given(drawn=loaded_queries())
def test_plain_residuals_of_random_queries(
    both_engines: BothEngines, drawn: tuple[TinyDatabase, Query]
) -> None:
    database, drawn_query = drawn
    both_engines.load(database.catalog.tables, database.rows)
    residuals = every_residual(drawn_query)
    expected = [brute.residual_value(residual, labelled(database)) for residual in residuals]
    assert both_engines.scalars(map(plain, residuals)) == expected


@st.composite
def loaded_sql(draw: Draw) -> tuple[TinyDatabase, str]:
    database = draw(strategies.databases())
    features = Features(comparisons=True, generals=True, distinct=True, semi_joins=True)
    return database, draw(strategies.queries(database.catalog, features))


@settings(max_examples=examples(20))
@given(drawn=loaded_sql())
def test_plain_residuals_of_random_sql(
    both_engines: BothEngines, drawn: tuple[TinyDatabase, str]
) -> None:
    database, sql = drawn
    both_engines.load(database.catalog.tables, database.rows)
    compiled = compile_query(sql, database.catalog)
    if isinstance(compiled, Query):
        both_engines.scalars(map(plain, every_residual(compiled)))


TYPES: dict[str, tuple[ColumnType, list[object]]] = {
    "big": (ColumnType(Family.INTEGER, "BIGINT"), [-(2**63), 0, 2**63 - 1]),
    "wide": (ColumnType(Family.DECIMAL, "DECIMAL(38,0)"), [-(10**37), 0, 10**38 - 1]),
    "text": (ColumnType(Family.TEXT, "VARCHAR"), ["", "a", "A", "a ", "ä", "%", "\\n", "'"]),
    "flag": (ColumnType(Family.BOOLEAN, "BOOLEAN"), [True, False]),
    "day": (ColumnType(Family.DATE, "DATE"), ["0001-01-01", "2024-02-29", "9999-12-31"]),
    "real": (ColumnType(Family.FLOAT, "DOUBLE"), [0.1, -0.0, 0.0, float("nan"), float("inf")]),
    "moment": (
        ColumnType(Family.TIMESTAMP, "TIMESTAMP"),
        ["2024-02-29 23:59:59.999999", "2024-02-29 23:59:59.999998"],
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_equality_and_order_of_values_agree(both_engines: BothEngines, name: str) -> None:
    kind, values = TYPES[name]
    held = table("held", "x", types={"x": kind}, nullable="x")
    both_engines.load([held], {"held": [(v,) for v in [*values, None]]})
    order = [("x", "y")] if kind.ordered else []
    for pair in (
        query(atom(held, "x"), atom(held, "x")),
        query(atom(held, "x"), atom(held, "y"), different="x y"),
        query(atom(held, "x"), atom(held, "y"), less=order),
        query(atom(held, "x"), atom(held, "y"), distinct="x"),
    ):
        both_engines.scalars(map(plain, every_residual(pair)))


@pytest.mark.parametrize("text", ["\\", "a\\'b", "%s", "%(x)s", ":x", "$1", "é", "--", "/*"])
def test_text_constants_reach_both_engines_unchanged(both_engines: BothEngines, text: str) -> None:
    kind = ColumnType(Family.TEXT, "VARCHAR")
    held = table("held", "x", types={"x": kind})
    both_engines.load([held], {"held": [(text,), ("other",)]})
    found = query(atom(held, Constant(text, kind)))
    assert both_engines.scalar(plain(Residuals(found).of(found.everything))) == 1


def test_a_difference_between_the_engines_is_noticed(both_engines: BothEngines) -> None:
    both_engines.load([table("held", "x")], {"held": [(1,), (2,)]})
    version = exp.select(exp.func("length", exp.func("version")))
    with pytest.raises(AssertionError):
        both_engines.scalar(version)
