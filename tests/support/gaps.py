"""What an engine cannot do yet, as a typed and strict marker.

    @notyet("postgres<18", "NOT NULL NOT VALID came with 18", raises=psycopg.errors.SyntaxError)

A test so marked must fail with that error on that engine, and passes on all others. Once the gap is
closed the test passes there too, and fails the run until the marker goes. The engine is what a
parameter of the test is called ("duckdb", "postgres", "spark", "embedded"), or a database with the
versions that lack something ("postgres<18", "duckdb<2").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import duckdb
import psycopg
import pytest

from tests.support.postgres_server import PostgresServer

_SERVERS = ("any_server", "own_server", "postgres_server")
_BELOW = re.compile(r"(duckdb|postgres)<(\d+)")


@dataclass(frozen=True)
class Gap:
    """One engine, why it cannot, and how that shows."""

    engine: str
    reason: str
    raises: type[BaseException]


def notyet(engine: str, reason: str, *, raises: type[BaseException]) -> pytest.MarkDecorator:
    """Mark a test, or one of its parameters, that the engine cannot pass yet."""
    return pytest.mark.notyet(Gap(engine, reason, raises))


def expect_gaps(request: pytest.FixtureRequest) -> None:
    """Expect the failures of the gaps that the running test meets."""
    for mark in request.node.iter_markers("notyet"):
        (gap,) = mark.args
        if _met(gap.engine, request):
            expected = pytest.mark.xfail(reason=gap.reason, raises=gap.raises, strict=True)
            request.applymarker(expected)


def _met(engine: str, request: pytest.FixtureRequest) -> bool:
    below = _BELOW.fullmatch(engine)
    if below is None:
        callspec = getattr(request.node, "callspec", None)
        return callspec is not None and engine in callspec.params.values()
    database, first = below[1], int(below[2])
    return (_duckdb() if database == "duckdb" else _postgres(request)) < first


def _duckdb() -> int:
    return int(duckdb.__version__.partition(".")[0])


def _postgres(request: pytest.FixtureRequest) -> int:
    server = next(name for name in _SERVERS if name in request.fixturenames)
    return _version(request.getfixturevalue(server))


@cache
def _version(server: PostgresServer) -> int:
    with psycopg.connect(server.url()) as connection:
        return connection.info.server_version // 10_000
