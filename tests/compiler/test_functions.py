"""Known functions mean the same after a trip through the tree, on both engines."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import psycopg
import pytest
import sqlglot

from sqlrs.catalog import Catalog
from sqlrs.compile import compile_query
from sqlrs.functions import PURE_NAMES, PURE_NODES
from sqlrs.query import Query
from tests.compiler.schema import BIGINT, BOOLEAN, DATE, DECIMAL, DOUBLE, TEXT, TIMESTAMP, table

CONNECTION = duckdb.connect()
ROWS = """
    (5, -3, 2.5, 10.25, 'Hello World', 'lo', DATE '2024-02-29',
     TIMESTAMP '2024-02-29 13:14:15', TRUE),
    (7, 2, -0.5, -3.5, ' ab_%c ', 'b', DATE '2020-12-31', TIMESTAMP '1999-01-01 00:00:00', FALSE),
    (-8, 0, 0.0, 0.0, '', '', DATE '1970-01-01', TIMESTAMP '2000-06-15 23:59:59', NULL),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
COLUMNS = {
    "i": BIGINT, "j": BIGINT, "d": DOUBLE, "e": DECIMAL, "s": TEXT, "u": TEXT, "dt": DATE,
    "ts": TIMESTAMP, "b": BOOLEAN,
}  # fmt: skip
BOTH = [
    "abs(j) = 3", "ceil(d) = 3", "ceiling(d) > 0", "floor(d) < 0", "round(e) = 10",
    "round(e, 1) > 0", "sign(j) = -1", "sqrt(abs(d)) > 1", "cbrt(d) > 1", "exp(d) > 1",
    "ln(abs(i)) > 1.7", "power(i, 2) = 25", "mod(i, 3) = 2", "mod(i + 1, 3) = 0", "i % 3 = -2",
    "trunc(d) = 2", "pi() > 3", "sin(d) > 0", "cos(d) > 0", "tan(d) > 0", "asin(0) = 0",
    "acos(1) = 0", "atan(d) > 1", "atan2(d, 1) > 1", "degrees(d) > 100", "radians(d) > 0",
    "greatest(i, j) = 5", "least(i, j) = -3", "gcd(i, 10) = 5", "lcm(i, 2) = 10", "i / 2 = 2",
    "i * 3 - 1 > 2", "- i < 0", "d / 2 > 1", "lower(s) = 'hello world'", "upper(s) LIKE 'HE%'",
    "length(s) = 11", "char_length(s) = 7", "concat(s, u) = 'Hello Worldlo'",
    "s || u = 'Hello Worldlo'", "substring(s, 2, 3) = 'ell'", "substring(s FROM 2 FOR 3) = 'ell'",
    "substr(s, 7) = 'World'", "left(s, 2) = 'He'", "right(s, 2) = 'ld'", "trim(s) = 'ab_%c'",
    "ltrim(s) = 'ab_%c '", "rtrim(s, 'd') = 'Hello Worl'", "trim(BOTH 'H' FROM s) = 'ello World'",
    "trim(LEADING ' ' FROM s) = 'ab_%c '", "replace(s, 'l', 'L') = 'HeLLo WorLd'",
    "reverse(u) = 'ol'", "starts_with(s, 'He')", "position('lo' IN s) = 4", "strpos(s, 'o') = 5",
    "ascii(s) = 72", "split_part(s, ' ', 2) = 'World'", "s ~ 'l+o'", "s !~ 'l+o'",
    "s LIKE '%!_!%%' ESCAPE '!'", "s NOT LIKE 'H%'", "s ILIKE 'h%'", "coalesce(i, 9) = 9",
    "nullif(i, 5) IS NULL", "CASE WHEN i > 5 THEN b ELSE NOT b END",
    "CASE i WHEN 5 THEN 1 WHEN 7 THEN 2 END = 2", "extract(year FROM dt) = 2024",
    "extract(dow FROM dt) = 4", "extract(epoch FROM ts) > 0", "date_part('month', dt) = 2",
    "date_trunc('month', ts) = TIMESTAMP '2024-02-01 00:00:00'", "make_date(2024, 2, 29) = dt",
    "dt + INTERVAL '1 day' > DATE '2024-02-29'", "ts - INTERVAL '2' HOUR < TIMESTAMP '2000-01-01'",
    "dt - DATE '2020-12-31' = 0", "CAST(i AS text) = '5'", "i::integer + 1 = 6",
    "CAST(e AS integer) = 10", "CAST(ts AS date) = dt", "b IS TRUE", "b IS NOT TRUE",
    "b IS NOT FALSE", "i IS DISTINCT FROM 5", "i IS NOT DISTINCT FROM j", "i NOT BETWEEN 1 AND 5",
    "i NOT IN (5, 6)", "NOT (i > 5 AND b)", "(i, j) IN ((5, -3), (1, 1))", "(i = 5) = b", "NOT b",
    "s SIMILAR TO 'Hello%'",
]  # fmt: skip
DUCKDB = [
    "i // 2 = 2", "year(dt) = 2024", "month(dt) = 2", "day(dt) = 29", "hour(ts) = 13",
    "minute(ts) = 14", "quarter(dt) = 1", "dayofweek(dt) = 4", "dayofyear(dt) = 60",
    "ends_with(s, 'ld')", "prefix(s, 'He')", "suffix(s, 'ld')", "contains(s, 'lo')",
    "date_diff('day', dt, DATE '2024-03-01') = 1", "TRY_CAST(s AS integer) IS NULL",
    "if(b, i, j) = 5", "isfinite(d)", "i + 1 == 6", "ifnull(i, 9) = 9",
    "regexp_matches(s, 'l+')", "date_trunc('month', dt) = DATE '2024-02-01'", "pow(i, 2) = 49",
    "instr(s, 'o') = 5",
]  # fmt: skip


def _compiled(condition: str, dialect: str) -> str:
    """The condition as the compiled query holds it."""
    known = Catalog(dialect, (table("t", **COLUMNS),))
    query = compile_query(
        f"SELECT count(*) FROM t WHERE {condition} AND i IS DISTINCT FROM 99", known
    )
    assert isinstance(query, Query)
    found = [f.condition for f in query.atoms[0].filters]
    parts = [c.sql(dialect) for c in found if isinstance(c, sqlglot.exp.Expr)]
    assert len(parts) == 2, "the condition is one filter"
    return " AND ".join(f"({part})" for part in parts)


def _same_rows(run: Callable[[str], list[object]], condition: str, dialect: str) -> None:
    names = ", ".join(COLUMNS)
    rows = f"SELECT * FROM (VALUES {ROWS}) AS t({names})"
    written = run(f"SELECT * FROM ({rows}) AS t WHERE {condition} AND i IS DISTINCT FROM 99")
    assert run(f"SELECT * FROM ({rows}) AS t WHERE {_compiled(condition, dialect)}") == written


@pytest.mark.parametrize("condition", BOTH + DUCKDB)
def test_duckdb_reads_the_compiled_condition_as_the_written_one(condition: str) -> None:
    _same_rows(lambda sql: CONNECTION.execute(sql).fetchall(), condition, "duckdb")


@pytest.mark.postgres
def test_postgres_reads_the_compiled_conditions_as_the_written_ones(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        for condition in BOTH:
            _same_rows(lambda sql: connection.execute(sql).fetchall(), condition, "postgres")


def test_every_known_function_is_tried() -> None:
    tree = sqlglot.parse_one(f"SELECT {', '.join(BOTH + DUCKDB)}", read="duckdb")
    tried = {type(node) for node in tree.walk()}
    assert {node.__name__ for node in PURE_NODES - tried} == set()
    written = " ".join(BOTH + DUCKDB)
    assert {name for name in PURE_NAMES if f"{name}(" not in written} == set()
