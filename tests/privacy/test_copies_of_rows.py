"""Rows protected by clipping: copies of a row, and rows whose texts run into each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import duckdb
import pytest
from sqlglot import exp

from sqlrs.before_charge import Groups, mechanisms_of
from sqlrs.compiled import CompiledStatement
from sqlrs.connecting import connect
from sqlrs.engines.base import Opened
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms import CLIPPED
from sqlrs.mechanisms.clipped import ClippedVector
from sqlrs.sensitivity.clipping import clipped_number, clipped_parts, cut_units, parts_of
from sqlrs.settings import Settings
from sqlrs.trees.row_ids import with_row_id

Row = tuple[object, ...]
Output = tuple[float, tuple[int, ...], float]
"""The logarithm of a threshold's chance, the numbers with it, the scale of their noise."""


def _outputs(schema: str, rows: Sequence[Row], sql: str) -> list[Output]:
    """All that a release with epsilon 1 may be, from the database's own contributions."""
    settings = Settings()
    with duckdb.connect() as connection:
        connection.execute(schema)
        for row in rows:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO sale VALUES ({marks})", list(row))
        database = connect(connection, public="pub")
        compiled = CompiledStatement.of(sql, database.catalog, settings)
        with database.engine.snapshot() as snapshot:
            groups = Groups.read(compiled.statement.aggregations, snapshot, settings)
            found = mechanisms_of(compiled, groups, Decimal(1), None, settings, CLIPPED)
            [(asked, vector)] = found.items()
            assert isinstance(vector, ClippedVector)
            assert isinstance(vector.source, tuple)
            terms = [(one.signed, one.residuals) for one in vector.source]
            measurements = Measurements(Opened(snapshot, "duckdb"))
            seen = measurements.contributions(terms, asked[0], vector.grid)
    gamma = float(vector.choice_epsilon) / (2 if vector.opposed else 1)
    weights = [
        -3 * math.log(threshold) - gamma * cut
        for threshold, cut in zip(vector.grid, cut_units(seen), strict=True)
    ]
    top = max(weights)
    total = top + math.log(sum(math.exp(one - top) for one in weights))
    outputs = []
    for place, threshold in enumerate(vector.grid):
        single = vector.size == 1
        parts = 1 if single else parts_of(vector.grid)
        numbers = (
            (clipped_number(seen, place),)
            if single
            else clipped_parts(seen, place, groups.of[asked])
        )
        scale = vector.moves * parts * threshold / float(vector.noise.epsilon)
        outputs.append((weights[place] - total, numbers, scale))
    return outputs


def _loss(one: Sequence[Output], other: Sequence[Output]) -> float:
    return max(
        abs(log - log_there) + sum(map(abs, map(int.__sub__, numbers, there))) / scale
        for (log, numbers, scale), (log_there, there, _) in zip(one, other, strict=True)
    )


def test_another_copy_of_a_row_and_one_less_of_another() -> None:
    """The weights of some thresholds rise and those of others fall: gamma counts twice."""
    schema = """CREATE TABLE sale (shop INTEGER); CREATE TABLE pub (shop INTEGER, k INTEGER);
        INSERT INTO pub SELECT 0, i FROM range(2) AS t(i);
        INSERT INTO pub SELECT s, i FROM range(1, 300) AS q(s), range(100) AS t(i)"""
    sql = "SELECT count(*) FROM sale JOIN pub ON sale.shop = pub.shop"
    common: list[Row] = [(shop,) for shop in range(1, 251)]
    first, second = (_outputs(schema, [*common, (one,)], sql) for one in (1, 0))
    assert 0.9 < _loss(first, second) <= 1


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "b,c"), ("a,b", "c"), ("z", "")],
        [("a", "1:b"), ("a1", ":b"), ("z", "")],
    ],
)
def test_different_rows_have_different_names(rows: list[Row]) -> None:
    """One factor for two of them would scale down what the other one adds to other groups."""
    schema = """CREATE TABLE sale (a VARCHAR, b VARCHAR); CREATE TABLE pub (a VARCHAR, g INTEGER);
        INSERT INTO pub VALUES ('a', 1), ('z', 2);
        INSERT INTO pub SELECT s, 3 FROM range(1000), (VALUES ('a,b'), ('a1')) AS t(s)"""
    sql = "SELECT g, count(*) FROM sale JOIN pub ON sale.a = pub.a GROUP BY g"
    stays, one, other = rows
    first, second = (_outputs(schema, [stays, row], sql) for row in (one, other))
    assert _loss(first, second) <= 1


@pytest.mark.parametrize(
    ("types", "one", "other"),
    [
        ("a VARCHAR, b VARCHAR", ("x,", "y"), ("x", ",y")),
        ("a VARCHAR, b VARCHAR", ("", "x"), (None, "x")),
        ("a VARCHAR, b INTEGER", ("", None), (None, None)),
        ("a VARCHAR, b VARCHAR", ("1:", "a"), ("1:1", ":a")),
        ("a VARCHAR, b VARCHAR", ("-", None), (None, "-")),
        ("a VARCHAR COLLATE NOCASE, b INTEGER", ("x", 1), ("X", 1)),
    ],
)
def test_a_name_tells_rows_apart(types: str, one: Row, other: Row) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE sale ({types})")
        connection.execute("INSERT INTO sale VALUES (?, ?), (?, ?)", [*one, *other])
        [table] = connect(connection).catalog.tables
        named, name = with_row_id(table)
        computed = named.column(name).computed
        assert isinstance(computed, exp.Expr)
        text = f"SELECT {computed.sql('duckdb')} AS r FROM sale GROUP BY r"
        assert len(connection.execute(text).fetchall()) == 2
