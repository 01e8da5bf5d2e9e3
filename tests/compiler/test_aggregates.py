"""Aggregates of the text, and the counts and sums that are released for them."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from sqlrs.compiler.aggregates import Split, average, averaged, is_aggregate, split_aggregate
from sqlrs.compiler.source import Source
from sqlrs.errors import QueryRefused


def split(sql: str) -> Split:
    text = f"SELECT {sql} FROM t"
    source = Source(text, "duckdb", sqlglot.tokenize(text, read="duckdb"))
    tree = sqlglot.parse_one(text, read="duckdb")
    return split_aggregate(tree.expressions[0], source)


CASES = {
    "count(*)": ["count(*)"],
    "count(1)": ["count(*)"],
    "count(x)": ["count(x)"],
    "count(DISTINCT x)": ["count(DISTINCT x)"],
    "count(DISTINCT x) FILTER (WHERE p)": ["count(DISTINCT x) FILTER(WHERE p)"],
    "count(x) FILTER (WHERE y > 1)": ["count(x) FILTER(WHERE y > 1)"],
    "count_if(p)": ["count(*) FILTER(WHERE p)"],
    "count_if(p) FILTER (WHERE y > 1 OR p)": ["count(*) FILTER(WHERE (y > 1 OR p) AND p)"],
    "count(CASE WHEN y > 1 THEN 'yes' END)": ["count(*) FILTER(WHERE y > 1)"],
    "count(CASE WHEN y > 1 THEN 1 ELSE 0 END)": ["count(*)"],
    "count(CASE WHEN y > 1 THEN x END)": ["count(CASE WHEN y > 1 THEN x END)"],
    "count((y > 1)::INT)": ["count(CAST((y > 1) AS INT))"],
    "sum(x)": ["sum(x)"],
    "sum(1)": ["count(*)"],
    "sum(2)": ["sum(2)"],
    "sum(x) FILTER (WHERE p)": ["sum(x) FILTER(WHERE p)"],
    "sum(CASE WHEN y > 1 THEN 1 ELSE 0 END)": ["count(*) FILTER(WHERE y > 1)"],
    "sum(CASE WHEN y > 1 THEN 1 END)": ["count(*) FILTER(WHERE y > 1)"],
    "sum(CASE WHEN y > 1 THEN 1 ELSE NULL END)": ["count(*) FILTER(WHERE y > 1)"],
    "sum(CASE y WHEN 1 THEN 1 ELSE 0 END)": ["count(*) FILTER(WHERE (y) = (1))"],
    "sum(CASE WHEN y > 1 THEN x ELSE 0 END)": ["sum(CASE WHEN y > 1 THEN x ELSE 0 END)"],
    "sum(CASE WHEN p THEN 0 ELSE 1 END)": ["sum(CASE WHEN p THEN 0 ELSE 1 END)"],
    "sum(if(p, 1, 0))": ["count(*) FILTER(WHERE p)"],
    "sum((y > 1)::INT)": ["count(*) FILTER(WHERE y > 1)"],
    "avg(x)": ["sum(x)", "count(x)"],
    "avg(x) FILTER (WHERE p)": ["sum(x) FILTER(WHERE p)", "count(x) FILTER(WHERE p)"],
    "avg(CASE WHEN y > 1 THEN 1 ELSE 0 END)": ["count(*) FILTER(WHERE y > 1)", "count(*)"],
    "avg((y > 1)::INT)": ["count(*) FILTER(WHERE y > 1)", "count(CAST((y > 1) AS INT))"],
}


@pytest.mark.parametrize("sql", CASES)
def test_what_is_released(sql: str) -> None:
    found = split(sql).released
    assert [one.sql("duckdb", normalize_functions="lower") for one in found] == CASES[sql]


@pytest.mark.parametrize("sql", CASES)
def test_the_parts_make_the_aggregate(sql: str) -> None:
    """DuckDB gives the same for the aggregate as written and for what is made of its parts."""
    found = split(sql)
    columns = [exp.column(f"a{i}") for i in range(len(found.released))]
    parts = ", ".join(f"{one.sql('duckdb')} AS a{i}" for i, one in enumerate(found.released))
    made = f"SELECT {found.above(columns).sql('duckdb')} FROM (SELECT {parts} FROM t)"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x INT, y INT, p BOOLEAN)")
        connection.execute(
            "INSERT INTO t VALUES (1, 1, true), (2, 2, false), (NULL, 3, true), (7, NULL, NULL), "
            "(7, 2, true), (-4, 0, true), (NULL, NULL, NULL)"
        )
        wanted = connection.execute(f"SELECT {sql} FROM t").fetchall()
        assert connection.execute(made).fetchall() == wanted


@pytest.mark.parametrize(
    ("sql", "words"),
    {
        "min(x)": "min, max",
        "max(x) FILTER (WHERE p)": "min, max",
        "median(x)": "min, max",
        "stddev(x)": "min, max",
        "string_agg(x, ',')": "min, max",
        "any_value(x)": "min, max",
        "product(x)": "min, max",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)": "min, max",
        "approx_count_distinct(x)": "min, max",
        "sum(DISTINCT x)": "distinct",
        "avg(DISTINCT x)": "distinct",
        "sum(count(*))": "inside another",
        "count(*) FILTER (WHERE max(x) > 1)": "inside another",
        "sum(x ORDER BY y)": "form",
        "count(x, y)": "form",
        "count()": "form",
    }.items(),
)
def test_other_aggregates_are_refused(sql: str, words: str) -> None:
    assert is_aggregate(sqlglot.parse_one(f"SELECT {sql}", read="duckdb").expressions[0])
    with pytest.raises(QueryRefused) as refused:
        split(sql)
    assert refused.value.code == "aggregate"
    assert words in str(refused.value)
    assert refused.value.hint


def test_an_average_is_known_again() -> None:
    total, number = exp.column("a0", "r"), exp.column("a1", "r")
    made = average(total, number)
    assert averaged(made) == (total, number)
    assert averaged(sqlglot.parse_one("CASE WHEN a1 > 1 THEN a0::DOUBLE / a1 END")) is None
    assert averaged(sqlglot.parse_one("CASE WHEN a1 > 0 THEN a0::DOUBLE / a2 END")) is None


def test_an_average_of_a_count_that_noise_made_negative_is_null() -> None:
    tree = average(exp.column("a0"), exp.column("a1"))
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT {tree.sql('duckdb')} FROM (VALUES (6, 4), (6, 0), (6, -2)) AS t(a0, a1)"
        ).fetchall()
    assert rows == [(1.5,), (None,), (None,)]
