"""A database that is closed, or a server that is gone: told before the charge, nothing charged."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import psycopg
import pytest
import sqlalchemy

import sqlrs
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger
from tests.support.postgres_server import PostgresServer

COUNT = "SELECT count(*) FROM t"


@pytest.mark.parametrize("kind", ["duckdb file", "duckdb connection", "url", "connection", "pool"])
def test_a_closed_database_charges_nothing(
    kind: str, request: pytest.FixtureRequest, tmp_path: object
) -> None:
    ledger = MemoryLedger()
    target: object
    if kind.startswith("duckdb"):
        path = f"{tmp_path}/t.db"
        connection = duckdb.connect(path)
        connection.execute("CREATE TABLE t (x INTEGER)")
        target = connection
        if kind == "duckdb file":
            connection.close()
            target = f"duckdb:///{path}"
    else:
        url = request.getfixturevalue("postgres_db")
        with psycopg.connect(url) as owner:
            owner.execute("CREATE TABLE t (x integer)")
        openers: dict[str, Callable[[], object]] = {
            "url": lambda: url,
            "connection": lambda: psycopg.connect(url),
            "pool": lambda: sqlalchemy.create_engine(
                url.replace("postgresql:", "postgresql+psycopg:")
            ),
        }
        target = openers[kind]()
    database = sqlrs.connect(target, ledger=ledger)
    database.count(COUNT, "1")
    database.close()
    with pytest.raises(UsageError, match="the database is closed"):
        database.count(COUNT, "0.5")
    assert ledger.spent() == 1


def test_a_duckdb_connection_that_its_owner_closed_charges_nothing() -> None:
    ledger = MemoryLedger()
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x INTEGER)")
    with sqlrs.connect(connection, ledger=ledger) as database:
        connection.close()
        with pytest.raises(UsageError):
            database.count(COUNT, "1")
    assert ledger.spent() == 0


@pytest.mark.parametrize("kind", ["url", "connection", "pool"])
def test_a_server_that_is_gone_charges_nothing(kind: str) -> None:
    ledger = MemoryLedger()
    with PostgresServer() as server:
        url = server.url()
        with psycopg.connect(url) as owner:
            owner.execute("CREATE TABLE t (x integer)")
        target: object = url
        if kind == "connection":
            target = psycopg.connect(url, autocommit=True)
        elif kind == "pool":
            target = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        database = sqlrs.connect(target, ledger=ledger)
        database.count(COUNT, "1")
    with pytest.raises((EngineFailed, UsageError)) as caught:
        database.count(COUNT, "0.5")
    assert ledger.spent() == 1
    shown = caught.value.describe()
    assert "127.0.0.1" not in shown
    if isinstance(caught.value, EngineFailed):
        assert caught.value.code == "backend_failed"
        assert "nothing was read or charged" in shown
    database.close()
