"""A server of its own for the functions: tests change its settings and kill its processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.procedures.desk import Desk
from tests.support.postgres_server import PostgresServer

EDGES = [(a, b) for a in range(6) for b in range(6) if a != b and (a + b) % 4]


@pytest.fixture(scope="package")
def own_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        desk = Desk(server, server.url())
        # The log's writer wakes up more often, so that waiting for the disk is short.
        desk.run("ALTER SYSTEM SET wal_writer_delay = '5ms'")
        desk.run("SELECT pg_reload_conf()")
        yield server


@pytest.fixture
def desk(own_server: PostgresServer) -> Iterator[Desk]:
    """A fresh database with a small graph and nothing installed."""
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.edges(EDGES)
        yield desk


@pytest.fixture(scope="package")
def workshop(own_server: PostgresServer) -> Iterator[Desk]:
    """A database with the functions installed, shared by tests that only compute with them."""
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.edges(EDGES)
        desk.install()
        yield desk
