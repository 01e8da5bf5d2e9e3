"""A store in each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlrs.ledger.store import StoreLedger


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest) -> str:
    name = {"sqlite": "sqlite_url", "postgres": "postgres_db"}[request.param]
    return str(request.getfixturevalue(name))


@pytest.fixture
def store(store_url: str) -> Iterator[StoreLedger]:
    ledger = StoreLedger(store_url)
    yield ledger
    ledger.close()
