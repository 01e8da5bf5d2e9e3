"""The connections on which plans are tried, and data in which little is enough to survive."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import psycopg
import pytest

from sqlrs.measuring import sampling
from sqlrs.planning import leading, prune
from tests.planning.adapters import Direct


@pytest.fixture(scope="module")
def one_seed() -> Iterator[None]:
    """With one seed little data has survivors too, and values that a wrong bound would lose."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prune, "SEEDS", 1)
        yield


@pytest.fixture(scope="module")
def all_is_kept() -> Iterator[None]:
    """Small tables are otherwise too quick to be worth anything that is kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "_SMALL", 0)
        patch.setattr(sampling, "_PATIENCE", 0.0)
        patch.setattr(leading, "_WORTH_KEEPING", 0)
        yield


@pytest.fixture(scope="module")
def on_duckdb() -> Iterator[Direct]:
    """A DuckDB of the module's own."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield Direct(connection)


@pytest.fixture(scope="module")
def on_postgres(postgres: str) -> Iterator[Direct]:
    """A connection to PostgreSQL whose tables go with it."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET search_path = pg_temp")
        yield Direct(connection)
