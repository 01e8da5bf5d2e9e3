"""Columns that are picked without an engine are what DuckDB would have shown."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal

import pytest
from sqlglot import exp, parse_one

from sqlrs.engines.picked_columns import PickedColumns, only_picks
from sqlrs.engines.released import Layout, ReleasedDatabase, ReleasedRelation
from sqlrs.errors import QueryRefused

RELATION = ReleasedRelation(
    "released_0",
    (
        ("k0", "BIGINT"),
        ("k1", "VARCHAR"),
        ("a0", "BIGINT"),
        ("a1", "HUGEINT"),
        ("a2", "DECIMAL(38, 2)"),
    ),
    (
        (1, "x", 5, 10**38 - 1, Decimal("1.50")),
        (None, "y", -(2**63), -(10**38) + 1, Decimal("-2.00")),
        (1, None, 0, 0, Decimal("0.00")),
    ),
)
OTHER = ReleasedRelation("public_0", (("k0", "BIGINT"),), ((7,),))

PICKED = [
    'SELECT released_0.a0 AS "count(*)" FROM released_0',
    "SELECT released_0.a1 AS s, released_0.k0 AS k, released_0.a1 AS again FROM released_0",
    "SELECT released_0.a0 AS n, released_0.a1 AS n FROM released_0",
    "SELECT released_0.a2 AS s, released_0.a0 AS n FROM released_0",
]
NOT_PICKED = [
    "SELECT released_0.k1 AS k FROM released_0",
    "SELECT released_0.a0 + 1 AS n FROM released_0",
    "SELECT released_0.a0 AS n FROM released_0 ORDER BY n",
    "SELECT released_0.a0 AS n FROM released_0 LIMIT 1",
    "SELECT DISTINCT released_0.k0 AS n FROM released_0",
    "SELECT released_0.a0 AS n FROM released_0 WHERE released_0.a0 > 0",
    "SELECT released_0.a0 AS n FROM released_0, public_0",
    "SELECT released_0.a0 AS n FROM released_0 AS r, public_0 AS released_0",
    "SELECT t.a0 AS n FROM (SELECT 1 AS a0) AS t",
    "SELECT released_0.a0 AS n FROM released_0 TABLESAMPLE (50%)",
    "SELECT public_0.k0 AS n FROM released_0",
    "SELECT COUNT(*) AS n FROM released_0",
    "SELECT released_0.* FROM released_0",
    "SELECT released_0.nothing AS n FROM released_0",
    "WITH released_0 AS (SELECT 1 AS a0) SELECT released_0.a0 AS n FROM released_0",
    "SELECT released_0.a0 AS n FROM released_0 UNION ALL SELECT 1",
]


def read(text: str) -> exp.Query:
    tree = parse_one(text, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    return tree


@pytest.mark.parametrize("text", PICKED)
@pytest.mark.parametrize("rows", [RELATION.rows, ()], ids=["rows", "empty"])
def test_picked_columns_are_those_of_duckdb(
    text: str, rows: tuple[tuple[object, ...], ...]
) -> None:
    relation = ReleasedRelation(RELATION.name, RELATION.columns, rows)
    layout, tree = Layout.of([relation, OTHER]), read(text)
    picked = PickedColumns.of(tree, layout)
    assert picked is not None
    picked.fill([relation, OTHER])
    with closing(ReleasedDatabase(layout)) as database:
        database.fill([relation, OTHER])
        shown = database.run(tree)
    assert picked.run(tree) == shown
    assert repr(picked.run(tree).rows) == repr(shown.rows)
    picked.close()
    assert picked.run(tree).rows == ()


@pytest.mark.parametrize("text", NOT_PICKED)
def test_what_does_more_is_left_to_duckdb(text: str) -> None:
    assert PickedColumns.of(read(text), Layout.of([RELATION, OTHER])) is None


def test_only_types_decide_beyond_the_form() -> None:
    assert only_picks(read(NOT_PICKED[0])) and not only_picks(read(NOT_PICKED[2]))


def test_too_many_rows_are_refused_alike() -> None:
    relation = ReleasedRelation("r", (("a0", "BIGINT"),), tuple((n,) for n in range(100_001)))
    tree = read("SELECT r.a0 AS n FROM r")
    picked = PickedColumns.of(tree, Layout.of([relation]))
    assert picked is not None
    with pytest.raises(QueryRefused) as caught:
        picked.fill([relation])
    assert caught.value.code == "too_much"
