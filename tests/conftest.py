"""Fixtures and settings that the whole suite shares."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import gaps
from tests.support.engine_fixtures import both_engines as both_engines
from tests.support.postgres_server import PostgresServer

# The gate must give the same verdict twice; the nightly run looks for new examples.
settings.register_profile(
    "sqlrs",
    derandomize=True,
    max_examples=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly", settings.get_profile("sqlrs"), derandomize=False, max_examples=1000
)
settings.load_profile("sqlrs")


# A shell that starts the suite in the background lets it ignore Ctrl-C, and with it all programs
# that it starts, also those that a test wants to stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SPARK = Path(__file__).parent / "spark"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder of Spark to tests/test_spark.py, which runs it in one process."""
    named = any(Path(one).name.startswith("spark") or "/spark/" in one for one in config.args)
    return True if collection_path == _SPARK and not named else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for a server, directly or not, carries the marker; what is long goes first."""
    # Begun last, one long test would keep a single process busy while all others are done.
    items.sort(key=lambda item: item.path.name != "test_spark.py")
    for item in items:
        if "postgres_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)


@pytest.fixture(autouse=True)
def _gaps(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("notyet"):
        gaps.expect_gaps(request)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL server for each test process."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres(postgres_server: PostgresServer) -> str:
    """The URL of the superuser, on the maintenance database."""
    return postgres_server.url()


@pytest.fixture
def postgres_db(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh, empty database that is dropped after the test."""
    with postgres_server.database() as url:
        yield url
