"""Known functions mean the same after a trip through the tree, on both engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import psycopg
import pytest
import sqlglot

from sqlrs.catalog import Catalog
from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.functions import FUNCTIONS, SETTINGS_DEPENDENT
from sqlrs.errors import QueryRefused
from sqlrs.query import Query
from tests.compiler.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    declared,
    table,
)

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
    "ascii(s) = 72", "split_part(s, ' ', 2) = 'World'",
    "s LIKE '%!_!%%' ESCAPE '!'", "s NOT LIKE 'H%'", "s ILIKE 'h%'", "coalesce(i, 9) = 9",
    "nullif(i, 5) IS NULL", "CASE WHEN i > 5 THEN b ELSE NOT b END",
    "CASE i WHEN 5 THEN 1 WHEN 7 THEN 2 END = 2", "extract(year FROM dt) = 2024",
    "extract(dow FROM dt) = 4", "extract(epoch FROM ts) > 0", "pow(i, 2) = 49", "isfinite(dt)",
    "date_trunc('month', ts) = TIMESTAMP '2024-02-01 00:00:00'", "make_date(2024, 2, 29) = dt",
    "age(ts, TIMESTAMP '2020-01-01 00:00:00') > INTERVAL '1 year'",
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
    "regexp_matches(s, 'l+')", "date_trunc('month', dt) = DATE '2024-02-01'",
    "instr(s, 'o') = 5", "date_part('month', dt) = 2", "len(s) = 11", "lcase(s) LIKE 'he%'",
    "ucase(s) LIKE 'HE%'", "datediff('day', dt, DATE '2024-03-01') = 1", "i // 2 = -4",
]  # fmt: skip
POSTGRES = [
    "s ~ 'l+o'", "s !~ 'l+o'", "btrim(s) = 'ab_%c'", "btrim(s, 'H') = 'ello World'",
    "character_length(s) = 11", "s ~~ 'H%'", "s !~~ 'H%'", "substring(s FROM 'l+') = 'll'",
]  # fmt: skip


NOT_ASKED = {"unknown_function", "not_understood", "unsupported", "syntax_error", "parameter"}


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


def _same_rows(run: Callable[[str], Sequence[object]], condition: str, dialect: str) -> None:
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
        for condition in BOTH + POSTGRES:
            _same_rows(lambda sql: connection.execute(sql).fetchall(), condition, "postgres")


def test_every_known_function_is_tried() -> None:
    for dialect, own in (("duckdb", DUCKDB), ("postgres", POSTGRES)):
        written = " ".join(BOTH + own)
        assert {name for name in FUNCTIONS[dialect] if f"{name}(" not in written} == set()


def test_duckdb_calls_every_known_function_consistent() -> None:
    rows = CONNECTION.execute(
        "SELECT function_name, list(DISTINCT stability), bool_and(internal), "
        "list(DISTINCT function_type) FROM duckdb_functions() GROUP BY ALL"
    ).fetchall()
    known = {name: (stability, internal, kinds) for name, stability, internal, kinds in rows}
    # These are the grammar's own; nullif and split_part are macros over CASE and string_split.
    syntax = {"coalesce", "ifnull", "if", "nullif", "split_part"}
    for name in set(FUNCTIONS["duckdb"]) - syntax | {"string_split"}:
        assert known[name][:2] == (["CONSISTENT"], True), name
        assert known[name][2] == ["scalar"], name
    assert {"random"} <= {n for n, (stability, *_) in known.items() if "VOLATILE" in stability}


@pytest.mark.postgres
def test_postgres_calls_every_known_function_immutable(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT proname, provolatile::text, prokind::text, pronargs, provariadic <> 0 "
            "FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
        ).fetchall()
    # These are the grammar's own.
    syntax = {"coalesce", "nullif", "greatest", "least", "trim"}
    forms = {"extract": (2, 2), "position": (2, 2)}
    for name, (least, most) in {**FUNCTIONS["postgres"], **forms}.items():
        if name not in syntax:
            found = [r[1:3] for r in rows if r[0] == name and (r[4] or least <= r[3] <= most)]
            assert found, name
            volatile = {"i", "s"} if name in SETTINGS_DEPENDENT else {"i"}
            assert {v for v, _ in found} <= volatile, name
            assert {kind for _, kind in found} == {"f"}, name
            assert ("s" in {v for v, _ in found}) == (name in SETTINGS_DEPENDENT), name


def _refused(condition: str, dialect: str, catalog: Catalog | None = None) -> str:
    known = catalog or Catalog(dialect, (table("t", **COLUMNS),))
    with pytest.raises(QueryRefused) as caught:
        compile_query(f"SELECT count(*) FROM t WHERE {condition}", known)
    return caught.value.code


@pytest.mark.parametrize(
    "condition",
    [
        "date_part('month', dt) = 2", "year(dt) = 2024", "ifnull(i, 9) = 9", "len(s) = 1",
        "if(b, i, j) = 5", "nvl(i, 9) = 9", "instr(s, 'o') = 5", "lcase(s) = 'a'",
        "TRY_CAST(s AS integer) IS NULL", "SAFE_CAST(s AS integer) IS NULL", "div(i, 2) = 2",
        "date_diff('day', dt, dt) = 0", "i == 5", "i <=> 5", "! b", "date_trunc(s, ts) = ts",
        "floor(d, 2) = 2", "@ i = 5", "s ^@ 'H'", "s = 'Hello ' 'World'", "contains(s, 'lo')",
        "i::tinyint = 5", "i::double = 5", "s::string = 'a'", "i::long = 5", "dt::datetime = ts",
        "i::int1 = 5", "s::nvarchar = 'a'", "s::\"char\" = 'a'", "i::bit = b", "s::name = 'a'",
        "i::float(3) = 5", "i::int(3) = 5", "ts::interval(2) IS NULL", "like(s, 'a')",
    ],
)  # fmt: skip
def test_postgres_is_not_asked_what_it_does_not_know(condition: str) -> None:
    code = _refused(condition, "postgres")
    assert code in NOT_ASKED


@pytest.mark.parametrize(
    "condition",
    [
        "s ~ 'l+o'", "s !~ 'l+o'", "date_trunc(s, ts) = ts", "date_diff(s, dt, dt) = 0", "@ i = 5",
        "s ^@ 'H'", "nvl(i, 9) = 9", "regexp_like(s, 'l+')", "locate('a', s) = 1", "i = 0x1F",
        "floor(d, 2) = 2", "safe_cast(s AS integer) = 1", "i::bit = '1'", "date(ts) = dt",
    ],
)  # fmt: skip
def test_duckdb_is_not_asked_what_would_be_read_as_something_else(condition: str) -> None:
    code = _refused(condition, "duckdb")
    assert code in NOT_ASKED


def test_a_declared_function_must_stand_in_the_tree_as_written() -> None:
    own = (declared("sound"), declared("soundex"), declared("log10"))
    known = Catalog("duckdb", (table("t", **COLUMNS),), functions=own)
    compile_query("SELECT count(*) FROM t WHERE sound(s) = 'H400'", known)
    for wrong in ("log10(d) > 1", "soundex(s) = 'H400'", '"sound"(s) = \'H400\'', "sound() = 'H'",
                  "sound(s, s) = 'H'", "sound(DISTINCT s) = 'H'", "sound(*) = 'H'",
                  "main.sound(s) = 'H'", "sound(x := s) = 'H'", "sound(s ORDER BY s) = 'H'",
                  "sound(s) OVER () = 'H'", "sound((SELECT s FROM t)) = 'H'"):  # fmt: skip
        assert _refused(wrong, "duckdb", known), wrong
