"""What the text alone makes fail is refused before the charge, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.errors import QueryRefused
from sqlrs.ledger import Charge, MemoryLedger

SCHEMA = """
CREATE TABLE t (
  i integer, day date, ts timestamp, tm time, u uuid, f double precision, span interval, s text
);
INSERT INTO t VALUES (
  1, '2024-07-01', '2024-07-01', '10:00', '01234567-89ab-cdef-0123-456789abcdef', 1, '1 day', 'a'
);
"""
BAD = [
    "day > DATE '2024-06-31'",
    "day > CAST('2024-06-31' AS DATE)",
    "day IN ('2024-06-31')",
    "day < make_date(2024, 6, 31)",
    "ts > TIMESTAMP '2024-01-01 25:00:00'",
    "i = CAST('x' AS INT)",
    "i <> CAST('5x' AS INT)",
    "i <> CAST('12345678901' AS INT)",
    "u = 'abc'::uuid",
    "u = 'abc'",
    "u = '01234567-89ab-cdef-0123-456789abcdez'",
    "tm > TIME '25:00:00'",
    "tm > '25:00:00'",
    "span > '1 dog'",
    "day + INTERVAL '1 fortnite' > DATE '2024-01-01'",
    "i > 1 % 0",
]
GOOD = [
    "day > DATE '2024-06-30'",
    "day <> DATE '-infinity'",
    "day IN ('2024-06-30', '2024-02-29')",
    "ts > TIMESTAMP '2024-01-01 24:00:00'",
    "i <> CAST(' 5 ' AS INT)",
    "i IN ('5', '6')",
    "u = '{01234567-89ab-cdef-0123-456789abcdef}'::uuid",
    "u = '01234567-89ab-cdef-0123-456789abcdef'",
    "tm BETWEEN '10:00' AND '11:00'",
    "span > INTERVAL '1 day'",
    "day + INTERVAL '1 day' > DATE '2024-01-01' + INTERVAL '1 month'",
    "f > 1e-320",
    "i + CASE WHEN t.i > 5 THEN t.f / 2 ELSE 3 END > 1",
    "s LIKE 'a%'",
]
ONE = "SELECT count(*) FROM t WHERE {}"
TWO = "SELECT count(*) FROM t JOIN t AS o ON o.i = t.i WHERE o.day <= t.day AND (o.f < t.f OR t.{})"


class Charges(MemoryLedger):
    """A ledger that knows whether it was asked for anything."""

    charged = 0

    def reserve(self, charge: Charge) -> int:
        """Count the charge."""
        self.charged += 1
        return super().reserve(charge)


Target = duckdb.DuckDBPyConnection | psycopg.Connection


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param == "duckdb":
        with duckdb.connect() as duck:
            duck.execute(SCHEMA)
            yield duck
    else:
        url = request.getfixturevalue("postgres_db")
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(SCHEMA.encode())
            yield server


def test_constants_that_the_engine_cannot_read(target: Target) -> None:
    ledger = Charges()
    with sqlrs.connect(target, ledger=ledger) as database:
        for text in (shape.format(bad) for shape in (ONE, TWO) for bad in BAD):
            with pytest.raises(QueryRefused) as caught:
                database.count(text, 1)
            assert (text, caught.value.code) == (text, "bad_literal")
    assert ledger.charged == 0


def test_constants_that_the_engine_can_read(target: Target) -> None:
    ledger = Charges()
    with sqlrs.connect(target, ledger=ledger) as database:
        for text in (shape.format(good) for shape in (ONE, TWO) for good in GOOD):
            database.count(text, 1)
    assert ledger.charged == 2 * len(GOOD)


@pytest.mark.parametrize("condition", ["f > 1e-400", "f = 1e-400", "f > -1e-400", "f < 1e400"])
def test_numbers_that_no_double_holds(target: Target, condition: str) -> None:
    """DuckDB reads 0 and infinity, PostgreSQL an error: the answer is the engine's own."""
    text = ONE.format(condition)
    with sqlrs.connect(target) as database:
        if isinstance(target, duckdb.DuckDBPyConnection):
            (count,) = target.execute(text).fetchall()[0]
            assert database.sensitivity(text).count == count
            return
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            target.execute(text.encode())
        with pytest.raises(QueryRefused, match="bad_literal"):
            database.count(text, 1)


def test_the_place_of_a_constant_is_marked(target: Target) -> None:
    text = ONE.format("i > 5 OR u = 'abc' OR s = 'b'")
    with sqlrs.connect(target) as database, pytest.raises(QueryRefused) as caught:
        database.count(text, 1)
    assert caught.value.span is not None
    marked = text[caught.value.span.start : caught.value.span.end]
    assert "'abc'" in marked


def test_declared_functions_are_not_called(target: Target) -> None:
    """Whether they read a table is the owner's word: what they say of a constant is charged for."""
    if isinstance(target, duckdb.DuckDBPyConnection):
        target.execute("CREATE MACRO inverse(x) AS 1 // x")
    else:
        target.execute(
            "CREATE FUNCTION inverse(x integer) RETURNS integer LANGUAGE sql IMMUTABLE RETURN 1 / x"
        )
    ledger = Charges()
    functions = {"inverse": "(integer) -> integer"}
    with sqlrs.connect(target, ledger=ledger, functions=functions) as database:
        with pytest.raises(sqlrs.SqlrsError) as caught:
            database.count(ONE.format("i > inverse(CAST('0' AS INT) + CAST('0' AS INT))"), 1)
        assert caught.value.code == "database_failed"
    assert ledger.charged == 1


UNITS = """
CREATE TABLE patient (id integer PRIMARY KEY);
CREATE TABLE visit (
  id integer PRIMARY KEY, patient integer NOT NULL REFERENCES patient (id),
  cost integer, price decimal(10, 2), day date
);
"""
BAD_IN_UNITS = [
    "HAVING sum(cost) > 'abc'",
    "HAVING max(day) > '2024-06-31'",
    "HAVING max(day) > DATE '2024-06-31'",
    "HAVING max(day) + INTERVAL '1 fortnite' > DATE '2024-01-01'",
    "HAVING count(*) IN ('1', 'x')",
    "HAVING count(*) > 1 % 0",
]
GOOD_IN_UNITS = [
    "HAVING sum(cost) > '3'",
    "HAVING sum(price) BETWEEN '1.005' AND '123456789012.5'",
    "HAVING max(day) > '2024-06-30' OR count(DISTINCT cost) > 2",
    "HAVING max(CASE WHEN cost > 5 THEN cost ELSE 3 END) > 1",
]
IN_UNITS = "SELECT count(*) FROM (SELECT patient FROM visit GROUP BY patient {}) t"


def test_constants_inside_units(target: Target) -> None:
    if isinstance(target, duckdb.DuckDBPyConnection):
        target.execute(UNITS)
    else:
        target.execute(UNITS.encode())
    ledger = Charges()
    with sqlrs.connect(target, ledger=ledger, public=["t"], unit="patient.id") as database:
        for bad in BAD_IN_UNITS:
            with pytest.raises(QueryRefused) as caught:
                database.query(IN_UNITS.format(bad), 1)
            assert (bad, caught.value.code) == (bad, "bad_literal")
        assert ledger.charged == 0
        for good in GOOD_IN_UNITS:
            database.query(IN_UNITS.format(good), 1)
    assert ledger.charged == len(GOOD_IN_UNITS)
