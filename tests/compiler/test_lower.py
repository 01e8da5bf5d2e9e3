"""The compiled form of every construct of the language, and where each condition goes."""

from __future__ import annotations

import pytest

from sqlrs.catalog import Catalog
from sqlrs.compiler.compile import compile_query
from sqlrs.query import Query
from tests.compiler.drawing import drawn
from tests.compiler.fixture_files import Block, blocks
from tests.compiler.schema import BIGINT, CATALOG, POSTGRES, table


def compiled(sql: str, catalog: Catalog = CATALOG) -> Query:
    query = compile_query(sql, catalog)
    assert isinstance(query, Query)
    return query


@pytest.mark.parametrize("example", blocks("queries.sql"), ids=str)
def test_example_compiles_as_drawn(example: Block) -> None:
    assert drawn(compile_query(example.sql, CATALOG), "duckdb") == example.expected["query"]


def test_the_same_filter_on_two_aliases_is_equal() -> None:
    query = compiled(
        "SELECT count(*) FROM person a, person b WHERE a.id % 2 = 0 AND (b.id) % 2 = 0"
    )
    assert query.atoms[0].filters == query.atoms[1].filters != ()


def test_the_order_of_conditions_and_sides_does_not_matter() -> None:
    one = "SELECT count(*) FROM edge a, edge b WHERE a.src > 5 AND a.dst = b.src AND a.src <> 7"
    other = "SELECT count(*) FROM edge a, edge b WHERE 7 <> a.src AND b.src = a.dst AND 5 < a.src"
    assert compiled(one) == compiled(other)


def test_every_key_column_is_a_term_even_if_unused() -> None:
    wide = table("wide", "k1 k2", k1=BIGINT, k2=BIGINT, other=BIGINT)
    query = compiled("SELECT count(*) FROM wide", Catalog("duckdb", (wide,)))
    assert [column for column, _ in query.atoms[0].terms] == ["k1", "k2"]


def test_variable_names_stay_unique_for_names_with_dots() -> None:
    first = table("r", **{"b.c": BIGINT})
    second = table("s", c=BIGINT)
    catalog = Catalog("duckdb", (first, second))
    query = compiled('SELECT count(*) FROM r AS a, s AS "a.b" WHERE a."b.c" < "a.b".c', catalog)
    assert len(query.variables({0, 1})) == 2


def test_long_aliases_do_not_reach_the_limit_of_postgres() -> None:
    name = "n" * 60
    query = compiled(f"SELECT count(*) FROM (SELECT * FROM edge AS {name}) AS {name}2", POSTGRES)
    assert all(len(atom.alias.encode()) <= 63 for atom in query.atoms)
