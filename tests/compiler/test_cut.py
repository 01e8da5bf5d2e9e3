"""Statements cut at their aggregates: what is below, and what goes on above."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.cut import Cut, cut
from sqlrs.compiler.source import Source
from sqlrs.errors import QueryRefused

_TEXT = ColumnType(Family.TEXT, "VARCHAR")
_INT = ColumnType(Family.INTEGER, "INTEGER")


def _table(name: str, private: bool, **columns: ColumnType) -> Table:
    return Table(name, tuple(Column(n, t) for n, t in columns.items()), private=private)


CATALOG = Catalog(
    "duckdb",
    (
        _table("visit", True, id=_INT, ward=_TEXT, cost=_INT, patient=_INT),
        _table("patient", True, id=_INT, age=_INT),
        Table(
            "wards",
            (Column("ward", _TEXT), Column("beds", _INT)),
            private=False,
            schema="main",
        ),
    ),
)


def made(sql: str) -> Cut:
    source = Source(sql, "duckdb", sqlglot.tokenize(sql, read="duckdb"))
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    return cut(tree, CATALOG, source)


def above(sql: str) -> str:
    return made(sql).above.sql("duckdb")


CASES = {
    "SELECT count(*) FROM visit": (
        'SELECT released_0.a0 AS "count(*)" FROM released_0',
        ["SELECT FROM visit"],
    ),
    "SELECT ward, count(*) AS n FROM visit GROUP BY ward HAVING count(*) > 50 "
    "ORDER BY n DESC LIMIT 3": (
        'SELECT released_0.k0 AS "ward", released_0.a0 AS n FROM released_0 '
        "WHERE released_0.a0 > 50 ORDER BY n DESC LIMIT 3",
        ["SELECT FROM visit"],
    ),
    "SELECT v.ward, 100.0 * count(*) / sum(count(*)) OVER () AS share FROM visit AS v GROUP BY 1": (
        'SELECT released_0.k0 AS "ward", 100.0 * released_0.a0 / SUM(released_0.a0) OVER () '
        "AS share FROM released_0",
        ["SELECT FROM visit AS v"],
    ),
    "WITH per AS (SELECT ward, count(*) AS n FROM visit GROUP BY ward) "
    "SELECT p.ward, n / beds FROM per AS p JOIN wards AS w ON p.ward = w.ward": (
        'WITH per AS (SELECT released_0.k0 AS "ward", released_0.a0 AS n FROM released_0) '
        'SELECT p.ward, n / beds AS "n / beds" FROM per AS p JOIN public_0 AS w ON p.ward = w.ward',
        ["SELECT FROM visit"],
    ),
    "WITH dear AS (SELECT * FROM visit WHERE cost > 9) SELECT count(*) AS n FROM dear": (
        "SELECT released_0.a0 AS n FROM released_0",
        ["WITH dear AS (SELECT * FROM visit WHERE cost > 9) SELECT FROM dear"],
    ),
    "SELECT 100.0 * count(*) / (SELECT count(*) FROM visit) AS p FROM visit WHERE cost > 9": (
        'SELECT 100.0 * released_1.a0 / (SELECT released_0.a0 AS "count(*)" FROM released_0) AS p '
        "FROM released_1",
        ["SELECT FROM visit", "SELECT FROM visit WHERE cost > 9"],
    ),
    "SELECT upper(ward) AS ward, count(*) FROM visit GROUP BY visit.ward ORDER BY ward": (
        'SELECT UPPER(released_0.k0) AS ward, released_0.a0 AS "count(*)" FROM released_0 '
        "ORDER BY ward",
        ["SELECT FROM visit"],
    ),
    "SELECT count(*) FILTER (WHERE cost > 1) AS a, sum(cost), "
    "count(*) FILTER (WHERE cost > 1) AS b FROM visit": (
        'SELECT released_0.a0 AS a, released_0.a1 AS "sum(cost)", released_0.a0 AS b '
        "FROM released_0",
        ["SELECT FROM visit"],
    ),
    "SELECT avg(n) FROM (SELECT count(*) AS n FROM visit GROUP BY ward) AS t": (
        'SELECT AVG(n) AS "avg(n)" FROM (SELECT released_0.a0 AS n FROM released_0) AS t',
        ["SELECT FROM visit"],
    ),
    "SELECT w.ward, avg(cost) AS mean, sum(cost) AS total FROM visit AS v JOIN main.wards AS w "
    "ON v.ward = w.ward GROUP BY w.ward ORDER BY avg(cost)": (
        'SELECT released_0.k0 AS "ward", CASE WHEN released_0.a1 > 0 THEN CAST(released_0.a0 AS '
        "DOUBLE) / released_0.a1 END AS mean, released_0.a0 AS total FROM released_0 ORDER BY "
        "CASE WHEN released_0.a1 > 0 THEN CAST(released_0.a0 AS DOUBLE) / released_0.a1 END",
        ["SELECT FROM visit AS v JOIN main.wards AS w ON v.ward = w.ward"],
    ),
    "SELECT main.wards.beds, n FROM (SELECT ward, count(*) AS n FROM visit GROUP BY ward) AS t "
    "LEFT JOIN main.wards ON t.ward = main.wards.ward": (
        'SELECT wards.beds, n FROM (SELECT released_0.k0 AS "ward", released_0.a0 AS n '
        "FROM released_0) AS t LEFT JOIN public_0 AS wards ON t.ward = wards.ward",
        ["SELECT FROM visit"],
    ),
    "SELECT sum(count(*)) FILTER (WHERE count(*) > 5) OVER () AS s FROM visit GROUP BY ward": (
        "SELECT SUM(released_0.a0) FILTER(WHERE released_0.a0 > 5) OVER () AS s FROM released_0",
        ["SELECT FROM visit"],
    ),
    "SELECT ward, count(*) FROM visit GROUP BY ALL ORDER BY 2": (
        'SELECT released_0.k0 AS "ward", released_0.a0 AS "count(*)" FROM released_0 ORDER BY 2',
        ["SELECT FROM visit"],
    ),
}


@pytest.mark.parametrize("sql", CASES)
def test_a_statement_is_cut_at_its_aggregates(sql: str) -> None:
    wanted, rows = CASES[sql]
    found = made(sql)
    assert found.above.sql("duckdb") == wanted
    assert [below.select.sql("duckdb") for below in found.belows] == rows


@pytest.mark.parametrize(
    ("sql", "code"),
    {
        "SELECT ward FROM visit": "not_a_count",
        "SELECT * FROM (SELECT ward, cost FROM visit) AS t": "not_a_count",
        "SELECT ward, cost, count(*) FROM visit GROUP BY ward": "not_grouped",
        "SELECT *, count(*) FROM visit GROUP BY ward": "not_grouped",
        "SELECT sum(count(*)) FROM visit": "aggregate",
        "SELECT count(*) FROM visit GROUP BY count(*)": "aggregate",
        "SELECT max(cost) FROM visit": "aggregate",
        "WITH released_0 AS (SELECT 1 AS a0) SELECT a0 FROM released_0": "unsupported_name",
        "SELECT product(cost) FROM visit": "aggregate",
        "SELECT ward, count(*) FROM visit GROUP BY ROLLUP (ward)": "group_by",
        "SELECT count(*) FROM visit GROUP BY 7": "wrong_columns",
        "WITH per AS (SELECT ward, count(*) AS n FROM visit GROUP BY ward) "
        "SELECT count(*) FROM per JOIN visit ON per.ward = visit.ward": "join_form",
        "WITH RECURSIVE r AS (SELECT 1) SELECT count(*) FROM visit": "recursive",
        "SELECT ward FROM wards WHERE EXISTS (SELECT 1 FROM visit)": "subquery",
        "SELECT count(*) FROM visit UNION ALL SELECT cost FROM visit": "join_form",
    }.items(),
)
def test_what_cannot_be_cut_is_refused(sql: str, code: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        made(sql)
    assert refused.value.code == code


def test_a_column_that_may_be_the_key_is_looked_up_later() -> None:
    """`ward` and `v.ward` are the same only where one item of FROM has such a column."""
    found = made("SELECT ward, count(*) FROM visit AS v GROUP BY v.ward")
    [below] = found.belows
    assert [(e.sql(), number) for e, number in below.same] == [("ward", 0)]
    with pytest.raises(QueryRefused):
        made("SELECT w.ward, count(*) FROM visit AS v, wards AS w GROUP BY v.cost")


def test_public_tables_of_the_cuts_are_not_above() -> None:
    found = made("SELECT count(*) FROM visit AS v JOIN wards AS w ON v.ward = w.ward")
    assert found.public == ()
    found = made("SELECT * FROM (SELECT count(*) FROM visit) AS t, wards, main.wards AS other")
    assert [table.name for table in found.public] == ["wards"]
