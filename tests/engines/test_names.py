"""Names survive: every keyword of both engines, odd and long names, as table, column and alias."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import psycopg
import pytest

from sqlrs.residuals.residual import Residuals
from sqlrs.sql.plain import plain
from sqlrs.trees.identifiers import identifier
from tests.support.builders import atom, query, table
from tests.support.engine_fixtures import BothEngines
from tests.support.postgres_server import PostgresServer

ODD = [
    "Mixed", "UPPER", "with space", 'quo"te', "apo'strophe", "semi;colon", "dot.ted", "é", "表",
    "1st", "a$b", "--", "/*", "%s", "back\\slash", "tab\tbed", "new\nline", "x" * 63, "_", "[x]",
]  # fmt: skip


@pytest.fixture(scope="module")
def keywords(postgres: str) -> list[str]:
    with duckdb.connect() as connection:
        found = connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    with psycopg.connect(postgres) as server:
        found += server.execute("SELECT word FROM pg_get_keywords()").fetchall()
    return sorted({str(row[0]) for row in found})


def check(both: BothEngines, names: list[str]) -> None:
    """For each name a table, its column and its alias of that name, joined with itself."""
    tables = [replace(table(name, name), schema="held") for name in names]
    both.load(tables, {t.label: [(1,), (1,), (2,)] for t in tables})
    statements = []
    for named in tables:
        pair = query(
            atom(named, "x", alias=named.name), atom(named, "x", alias=named.name[:60] + "_2")
        )
        statements.append(plain(Residuals(pair).of(pair.everything)))
    assert both.scalars(statements) == [5] * len(names)


def test_keywords_that_stay_unquoted_are_names(
    both_engines: BothEngines, keywords: list[str]
) -> None:
    unquoted = [word for word in keywords if not identifier(word).args["quoted"]]
    assert len(keywords) > 450 and len(unquoted) > 250
    check(both_engines, unquoted)


def test_quoted_keywords_are_names(both_engines: BothEngines, keywords: list[str]) -> None:
    quoted = [word for word in keywords if identifier(word).args["quoted"]]
    check(both_engines, quoted[::8])


def test_odd_names(both_engines: BothEngines) -> None:
    check(both_engines, ODD)


def test_words_that_some_version_reserves_are_quoted(any_server: PostgresServer) -> None:
    reserved = "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'"
    with psycopg.connect(any_server.url()) as server:
        words = [str(row[0]) for row in server.execute(reserved)]
    assert [word for word in words if not identifier(word).args["quoted"]] == []


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_the_catalog_gives_names_exactly(both_engines: BothEngines, engine: str) -> None:
    tables = [replace(table(name, name, keys=[]), schema="held") for name in ODD]
    both_engines.load(tables, {})
    found = both_engines.engines[engine].catalog().tables
    assert {t.name for t in found if t.schema == "held"} == set(ODD)
    assert all(t.columns[0].name == t.name for t in found if t.schema == "held")
