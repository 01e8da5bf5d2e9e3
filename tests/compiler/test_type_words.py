"""Every type that a cast may name is the engine's own, and stays so on its way through the tree."""

from __future__ import annotations

import duckdb
import psycopg
import pytest
import sqlglot
from sqlglot import exp

from sqlrs.dialects import dialect_named

SEVERAL_WORDS = [
    "timestamp with time zone", "timestamp without time zone", "decimal(5, 2)", "numeric(7)",
    "timestamp(3)",
]  # fmt: skip
POSTGRES_ALONE = [
    "varchar(3)", "char(3)", "character varying(2)", "timestamp(3) with time zone", "time(2)",
]  # fmt: skip


def _written(word: str, dialect: str) -> str:
    """What the tree writes for the type."""
    tree = sqlglot.parse_one(f"SELECT CAST(NULL AS {word})", dialect=dialect)
    found = tree.find(exp.Cast)
    assert found is not None
    return found.to.sql(dialect)


def _words(dialect: str) -> list[str]:
    return sorted(
        word.replace("_", " ") for word in dialect_named(dialect).type_words if "p_u" not in word
    )


def test_duckdb_knows_each_type_and_takes_the_written_one_for_the_same() -> None:
    connection = duckdb.connect()
    for word in [*_words("duckdb"), *SEVERAL_WORDS, "timestamp_us"]:
        both = [
            connection.execute(f"SELECT typeof(CAST(NULL AS {name}))").fetchall()
            for name in (word, _written(word, "duckdb"))
        ]
        assert both[0] == both[1], word


@pytest.mark.postgres
def test_postgres_knows_each_type_and_takes_the_written_one_for_the_same(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for word in [*_words("postgres"), *SEVERAL_WORDS, *POSTGRES_ALONE]:
            both = []
            for name in (word, _written(word, "postgres")):
                # The type with its length or precision, which pg_typeof leaves out.
                cursor = connection.execute(f"SELECT CAST(NULL AS {name})".encode())
                assert cursor.description is not None
                column = cursor.description[0]
                both.append((column.type_code, column.precision, column.scale, column._fmod))
            assert both[0] == both[1], word
