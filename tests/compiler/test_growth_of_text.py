"""Texts that a query builds stay within the bound that the reckoning promises, or it is refused."""

from __future__ import annotations

import random

import duckdb
import pytest
import sqlglot

from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.growth_of_text import MOST_BYTES, MOST_TIMES, _length
from sqlrs.compiler.source import Source
from sqlrs.errors import QueryRefused
from tests.compiler.schema import CATALOG, POSTGRES

LONG = "x" * 100


def nested(levels: int) -> str:
    """Each level makes every character ten."""
    text = "name"
    for _ in range(levels):
        text = f"replace({text}, 'x', 'xxxxxxxxxx')"
    return text


@pytest.mark.parametrize(
    "condition",
    [
        f"length({nested(6)}) > 1",
        f"left({nested(2)}, 1) = 'x'",
        f"{nested(1)} = 'x' AND {nested(1)} = 'y' AND {nested(1)} = 'z'",
        "replace(name, 'a', name) = 'b'",
        " || ".join(["name"] * 40) + " = 'x'",
        f"concat({', '.join(['name'] * 40)}) = 'x'",
        "upper(upper(upper(upper(name)))) = 'X'",
        f"replace(replace('{LONG}', 'x', '{LONG}'), 'x', '{LONG}') = name",
    ],
)
@pytest.mark.parametrize("catalog", [CATALOG, POSTGRES], ids=["duckdb", "postgres"])
def test_texts_that_multiply_are_refused(condition: str, catalog: object) -> None:
    with pytest.raises(QueryRefused) as caught:
        compile_query(f"SELECT count(*) FROM person WHERE {condition}", catalog)  # type: ignore[arg-type]
    assert caught.value.code == "text_growth"


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT replace(name, 'x', 'xxxxxxxxxx') AS n FROM person), "
        "b AS (SELECT replace(n, 'x', 'xxxxxxxxxx') AS n FROM a) "
        "SELECT count(*) FROM b WHERE replace(n, 'x', 'xxxxxxxxxx') = 'x'",
        "SELECT count(*) FROM (SELECT name || name || name || name AS n FROM person) AS t "
        "WHERE n || n || n || n || n || n || n || n || n = 'x'",
    ],
)
def test_growth_through_derived_tables_counts(sql: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        compile_query(sql, CATALOG)
    assert caught.value.code == "text_growth"


def test_padding_and_long_numbers_of_postgres_count() -> None:
    for condition in ("CAST(name AS char(1000000)) = 'x'", "'' || power(id, 100000) = 'x'"):
        with pytest.raises(QueryRefused) as caught:
            compile_query(f"SELECT count(*) FROM person WHERE {condition}", POSTGRES)
        assert caught.value.code == "text_growth"


@pytest.mark.parametrize(
    "condition",
    [
        "upper(name) = 'ADA'",
        "replace(replace(name, '-', ''), ' ', '') = 'ada'",
        "name || ', ' || name || ' born ' || born = 'ada'",
        "lower(replace(name, 'ä', 'ae')) = 'ada'",
        "CAST(id AS VARCHAR) || '-' || CAST(born AS VARCHAR) = '1-2000-01-01'",
        "concat(name, ' ', name) LIKE 'a%'",
        f"name = '{'y' * 20_000}'",
    ],
)
def test_ordinary_texts_are_answered(condition: str) -> None:
    compile_query(f"SELECT count(*) FROM person WHERE {condition}", CATALOG)


def test_the_reckoning_is_an_upper_bound() -> None:
    """Random nests on DuckDB: no part of them is longer than what is reckoned for the whole."""
    rng = random.Random(11)

    def literal() -> str:
        return "'" + "".join(rng.choice("abΐŉ") for _ in range(rng.randint(0, 3))) + "'"

    def text(depth: int) -> str:
        if depth == 0:
            return rng.choice(["n", "n", literal()])
        one = text(depth - 1)
        return rng.choice(
            [
                f"replace({one}, {literal()}, {literal()})",
                f"({one} || {text(depth - 1)})",
                f"concat({one}, {literal()})",
                f"upper({one})",
                f"lower({one})",
                f"reverse({one})",
                f"left({one}, 2)",
                f"coalesce({one}, {literal()})",
                f"CASE WHEN {one} = 'a' THEN {one} ELSE {literal()} END",
                f"CAST(length({one}) AS VARCHAR)",
            ]
        )

    with duckdb.connect() as connection:
        for _ in range(300):
            value = "".join(rng.choice("abΐŉ") for _ in range(rng.randint(0, 9)))
            sql = text(rng.randint(1, 4))
            [(size,)] = connection.execute(
                f"SELECT coalesce(strlen({sql}), 0) FROM (SELECT ? AS n)", [value]
            ).fetchall()
            bound = _length(sqlglot.parse_one(sql, read="duckdb"), Source(sql, "duckdb", ()))
            assert size <= bound.times * len(value.encode()) + bound.bytes, sql


def test_the_bound_is_what_the_reference_says() -> None:
    assert (MOST_TIMES, MOST_BYTES) == (32, 16_384)
