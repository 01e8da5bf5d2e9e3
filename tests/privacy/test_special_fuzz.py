"""Random schemas and texts over every type of both engines: see tests/privacy/special_fuzz.py."""

from __future__ import annotations

import duckdb
import psycopg
import pytest

from tests.privacy.special_fuzz import attack


def test_nothing_breaks_on_a_few_types_of_duckdb() -> None:
    with duckdb.connect() as connection:
        assert not list(attack("duckdb", connection, 1, schemas=3, texts=4))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nothing_breaks_on_duckdb(seed: int) -> None:
    with duckdb.connect() as connection:
        assert not list(attack("duckdb", connection, seed, schemas=40, texts=10))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nothing_breaks_on_postgres(postgres_db: str, seed: int) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        try:
            assert not list(attack("postgres", connection, seed, schemas=40, texts=10))
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this server has no citext, or no ICU")
