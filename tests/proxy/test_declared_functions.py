"""Functions that the owner declared, through the proxy: the shadow knows their types alone."""

from __future__ import annotations

from pathlib import Path

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.proxy.library import LibraryBackend
from tests.proxy.harness import running_proxy

ROWS = (
    "CREATE TABLE person (id INTEGER PRIMARY KEY, kg DOUBLE PRECISION, m DOUBLE PRECISION)",
    "INSERT INTO person VALUES (1, 80, 2), (2, 50, 1), (3, 90, 1.5)",
)
MAKE = {
    "duckdb": "CREATE MACRO bmi(kg, m) AS kg / (m * m)",
    "postgres": "CREATE FUNCTION bmi(double precision, double precision) RETURNS double precision "
    "IMMUTABLE LANGUAGE sql AS 'SELECT $1 / ($2 * $2)'",
}
HEAVY = "SELECT count(*) FROM person WHERE bmi(kg, m) > 30"


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_counts_call_them_and_nothing_else_does(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target: object
    if kind == "duckdb":
        target = duckdb.connect()
        for statement in (*ROWS, MAKE[kind]):
            target.execute(statement)
    else:
        target = request.getfixturevalue("postgres_db")
        with psycopg.connect(str(target), autocommit=True) as owner:
            for statement in (*ROWS, MAKE[kind]):
                owner.execute(statement.encode())
    functions = {"bmi": "(double precision, double precision) -> double precision"}
    with (
        sqlrs.connect(target, functions=functions) as database,
        running_proxy(LibraryBackend(database), tmp_path) as proxy,
        psycopg.connect(proxy.dsn(), autocommit=True) as client,
    ):
        client.execute("SET sqlrs.epsilon = 2")
        (value,) = client.execute(HEAVY).fetchone() or (None,)
        assert isinstance(value, int)
        row = client.execute(
            "SELECT count(*) FROM person WHERE bmi(kg, %s) > %s", (1.5, 30)
        ).fetchone()
        assert row is not None
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("SELECT bmi(1, 2)")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            client.execute("SELECT count(*) FROM person WHERE other(kg) > 30")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            client.execute("SELECT count(*) FROM person WHERE bmi(kg) > 30")
