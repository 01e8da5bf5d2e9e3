"""What stands above the cuts means in DuckDB what it means in PostgreSQL, on the same rows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
import sqlglot
from psycopg import sql as psycopg_sql
from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.above import check_above, to_duckdb
from sqlrs.compiler.complexity import parse_tokens
from sqlrs.compiler.output_names import name_outputs
from sqlrs.compiler.source import read_source
from sqlrs.engines.released import ReleasedRelation, Result, afterwards
from sqlrs.errors import QueryRefused
from tests.support.examples import examples
from tests.support.postgres_server import PostgresServer

_FIXTURES = Path(__file__).parent / "fixtures"
_SEED = 20
_ROWS = 60
_CATALOG = Catalog("postgres", ())
# The columns of the released relation: name, DuckDB's type, PostgreSQL's.
_COLUMNS = (
    ("k0", "VARCHAR", "text"),
    ("k1", "DATE", "date"),
    ("k2", "TIMESTAMP", "timestamp"),
    ("k3", "BOOLEAN", "boolean"),
    ("i", "INTEGER", "integer"),
    ("a0", "BIGINT", "bigint"),
    ("a1", "DECIMAL(38, 2)", "numeric"),
    ("a2", "DOUBLE", "double precision"),
    ("a3", "HUGEINT", "numeric"),
)
_WARDS = (("A", 4), ("Bé", 0), ("c'd", 7), ("Z", None))


def _lines(name: str) -> list[str]:
    return (_FIXTURES / name).read_text(encoding="utf-8").splitlines()


def _rows() -> tuple[tuple[object, ...], ...]:
    draw = random.Random(_SEED)

    def row() -> tuple[object, ...]:
        values: list[object] = [
            draw.choice(["A", "Bé", "c'd", "", " a b ", "10%", "x_y", "ab,cd,ef", "ZÖ\tz"]),
            date(2023, 12, 28) + timedelta(days=draw.randrange(400)),
            datetime(2023, 12, 28) + timedelta(seconds=draw.randrange(10**7)),
            draw.random() < 0.5,
            draw.randrange(-9, 10),
            draw.choice([draw.randrange(-50, 50), draw.randrange(10**9), -7, 7, 0]),
            draw.choice(
                [Decimal(draw.randrange(-999, 999)) / 100, Decimal("2.50"), Decimal("-0.5")]
            ),
            draw.choice([draw.randrange(-9, 9) + 0.5, draw.uniform(-5, 5), 2.0]),
            draw.choice([draw.randrange(-99, 99), 10**20]),
        ]
        return tuple(None if draw.random() < 0.12 else value for value in values)

    return tuple(row() for _ in range(_ROWS))


ROWS = _rows()


@pytest.fixture(scope="module")
def server(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as connection:
        for name, columns, rows in (
            ("released_0", [(c, kind) for c, _, kind in _COLUMNS], ROWS),
            ("public_0", [("ward", "text"), ("beds", "integer")], _WARDS),
        ):
            definitions = psycopg_sql.SQL(", ").join(
                psycopg_sql.SQL("{} {}").format(psycopg_sql.Identifier(c), psycopg_sql.SQL(kind))
                for c, kind in columns
            )
            table = psycopg_sql.Identifier(name)
            connection.execute(psycopg_sql.SQL("CREATE TABLE {} ({})").format(table, definitions))
            marks = psycopg_sql.SQL(", ").join([psycopg_sql.Placeholder()] * len(columns))
            insert = psycopg_sql.SQL("INSERT INTO {} VALUES ({})").format(table, marks)
            connection.cursor().executemany(insert, rows)
        yield connection


def _written(sql: str) -> exp.Query:
    source = read_source(sql, "postgres")
    [tree] = parse_tokens(source.tokens, source.text, source.dialect)
    assert isinstance(tree, exp.Query)
    name_outputs(tree, "postgres")
    check_above(tree, source, _CATALOG)
    columns = {
        "released_0": {name: kind for name, kind, _ in _COLUMNS},
        "public_0": {"ward": "VARCHAR", "beds": "INTEGER"},
    }
    return to_duckdb(tree, columns, source)


RELATIONS = [
    ReleasedRelation("released_0", tuple((name, kind) for name, kind, _ in _COLUMNS), ROWS),
    ReleasedRelation("public_0", (("ward", "VARCHAR"), ("beds", "INTEGER")), _WARDS),
]


def in_duckdb(sql: str) -> Result:
    return afterwards(_written(sql), RELATIONS)


def in_postgres(server: psycopg.Connection, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
    cursor = server.execute(sql.encode())
    return [column.name for column in cursor.description or ()], cursor.fetchall()


def alike(one: object, other: object, tolerance: float = 1e-12) -> bool:
    if isinstance(one, float | Decimal | int) and isinstance(other, float | Decimal | int):
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(one, datetime) and isinstance(other, datetime):
        return one.replace(tzinfo=None) == other.replace(tzinfo=None)
    return type(one) is type(other) and one == other


def same(server: psycopg.Connection, sql: str) -> None:
    names, wanted = in_postgres(server, sql)
    found = in_duckdb(sql)
    assert [name for name, _ in found.columns] == names
    assert len(found.rows) == len(wanted)
    for ours, theirs in zip(found.rows, wanted, strict=True):
        assert all(map(alike, ours, theirs)), (sql, ours, theirs)


EXPRESSIONS = _lines("above_expressions.sql")


BATCHES = [EXPRESSIONS[i : i + 25] for i in range(0, len(EXPRESSIONS), 25)]


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: batch[0])
def test_an_expression_has_one_value(server: psycopg.Connection, batch: list[str]) -> None:
    shown = ", ".join(f"{one} AS x{number}" for number, one in enumerate(batch))
    # No row divides by 0, where PostgreSQL has no value at all.
    sql = f"SELECT {shown} FROM released_0 WHERE i <> 0 ORDER BY k0, k1, k2, i, a0, a1, a2"
    _, wanted = in_postgres(server, sql)
    found = in_duckdb(sql).rows
    assert len(found) == len(wanted) > _ROWS // 2
    different = {
        (expression, ours, theirs)
        for one, other in zip(found, wanted, strict=True)
        for expression, ours, theirs in zip(batch, one, other, strict=True)
        if not alike(ours, theirs)
    }
    assert different == set()


STATEMENTS = _lines("above_statements.sql")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_has_one_result(server: psycopg.Connection, sql: str) -> None:
    same(server, sql)


REFUSED = _lines("above_refused.sql")


@pytest.mark.parametrize("expression", REFUSED)
def test_what_would_differ_is_refused(expression: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        _written(f"SELECT {expression} AS x FROM released_0")
    assert refused.value.span is not None


def test_time_and_uuid_are_carried() -> None:
    """Kinds of keys that nothing is computed from pass through."""
    source = read_source("SELECT k0, k1 FROM released_0 ORDER BY k0", "postgres")
    [tree] = parse_tokens(source.tokens, source.text, source.dialect)
    assert isinstance(tree, exp.Query)
    columns = (("k0", "TIME"), ("k1", "UUID"))
    statement = to_duckdb(tree, {"released_0": dict(columns)}, source)
    relation = ReleasedRelation("released_0", columns, ((time(2), None), (time(1), None)))
    assert [row[0] for row in afterwards(statement, [relation]).rows] == [time(1), time(2)]


class _Drawn:
    """Random expressions over the released columns, a few operations deep."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def number(self, depth: int) -> str:
        if depth == 0:
            return self._draw.choice(_LEAVES)
        form = self._draw.choice(_FORMS)
        return form.format(*(self.number(depth - 1) for _ in range(4)))


_LEAVES = (
    *("a0", "a1", "a2", "a3", "i", "7", "2.5", "0.1", "(k1 - DATE '2024-01-01')", "length(k0)"),
    "extract(month FROM k1)",
)
_FORMS = (
    *("({} + {})", "({} - {})", "({} * {})", "({} / nullif({}, 0))", "({} / nullif({}, 0))"),
    *("round({})", "round(({})::numeric, 2)", "({})::bigint", "({})::numeric", "floor({})"),
    *("coalesce({}, {})", "least({}, {})", "ceil({})", "abs({})", "(- {})", "nullif({}, {})"),
    *("CASE WHEN {} < {} THEN {} ELSE {} END", "({})::numeric(30, 2)", "mod(({})::bigint, 7)"),
)


def test_what_is_drawn_at_random_has_one_value(server: psycopg.Connection) -> None:
    drawn = _Drawn(_SEED)
    compared = 0
    for _ in range(examples(30)):
        expression = drawn.number(2)
        sql = f"SELECT {expression} AS x FROM released_0 ORDER BY k0, k1, k2, i, a0, a1, a2"
        try:
            _, wanted = in_postgres(server, sql)
        except psycopg.Error:
            continue
        compared += 1
        found = in_duckdb(sql).rows
        # Each division is exact to 16 digits or more, and a difference loses some of them.
        pairs = [(ours, theirs) for [ours], [theirs] in zip(found, wanted, strict=True)]
        assert [pair for pair in pairs if not alike(*pair, tolerance=1e-9)] == [], expression
    assert compared > examples(20)


@pytest.mark.parametrize("expression", ["a0 / 7", "round(a2)", "round(29 / 200::numeric, 2)"])
def test_the_comparison_sees_what_is_not_rewritten(
    server: psycopg.Connection, expression: str
) -> None:
    """DuckDB reads these differently as they stand."""
    sql = f"SELECT {expression} AS x FROM released_0 ORDER BY k0, k1, k2, i, a0, a1, a2"
    _, wanted = in_postgres(server, sql)
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    found = afterwards(tree, RELATIONS).rows
    assert not all(alike(a, b) for [a], [b] in zip(found, wanted, strict=True))
