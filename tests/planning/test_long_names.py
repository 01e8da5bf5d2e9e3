"""Names as long as PostgreSQL keeps them, or longer, that differ only at their end."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import psycopg
import pytest

from sqlrs.catalog import Catalog
from sqlrs.compiler.compile import compile_query
from sqlrs.planning.choose import choose
from sqlrs.planning.plan import Factorised, Pruned
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from sqlrs.sql.together import together
from sqlrs.sql.write import statement_of
from sqlrs.trees.naming import LONGEST_NAME, free_name
from tests.planning.adapters import Direct
from tests.support.builders import table

FIRST, SECOND = "c" * 62 + "1", "c" * 62 + "2"
EDGE = table("long_edge", FIRST, SECOND, keys=[f"{FIRST} {SECOND}"])
PREFIX = "x" * 59
PATTERNS = {
    "path": "ab bc cd",
    "triangle": "ab bc ca",
    "star": "ab ac ad",
    "square": "ab bc cd da",
}


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def direct(request: pytest.FixtureRequest) -> Iterator[Direct]:
    if request.param == "duckdb":
        with duckdb.connect() as connection:
            yield Direct(connection)
        return
    with psycopg.connect(request.getfixturevalue("postgres"), autocommit=True) as postgres:
        postgres.execute("SET search_path = pg_temp")
        yield Direct(postgres)


def _sql(pattern: str) -> str:
    """A pattern of edges, each under an alias of 60 bytes, all nodes different."""
    columns: dict[str, list[str]] = {}
    names = [f"{PREFIX}{number}" for number in range(len(pattern.split()))]
    for name, edge in zip(names, pattern.split(), strict=True):
        for node, column in zip(edge, (FIRST, SECOND), strict=True):
            columns.setdefault(node, []).append(f"{name}.{column}")
    nodes = [held[0] for held in columns.values()]
    where = [f"{held[0]} = {other}" for held in columns.values() for other in held[1:]]
    where += [f"{one} <> {other}" for i, one in enumerate(nodes) for other in nodes[:i]]
    tables = ", ".join(f"long_edge AS {name}" for name in names)
    return f"SELECT count(*) FROM {tables} WHERE {' AND '.join(where)}"


@pytest.mark.parametrize("name", PATTERNS)
def test_every_plan_keeps_names_apart(name: str, direct: Direct) -> None:
    rng = random.Random(name)
    direct.fill(EDGE, sorted({(rng.randrange(6), rng.randrange(6)) for _ in range(24)}))
    compiled = compile_query(_sql(PATTERNS[name]), Catalog(direct.dialect, (EDGE,)))
    assert isinstance(compiled, Query)
    residuals = Residuals(compiled)
    wanted = [residuals.of(compiled.everything), *residuals.undecided(residuals.required)]
    repetition = Repetition(1e4, 1e8, 1e3)
    statistics = Statistics(
        {EDGE.identity: 1e6}, {(EDGE.identity, column): repetition for column in (FIRST, SECOND)}
    )
    expected, stepped = [], []
    for residual in wanted:
        plain = direct.scalar(statement_of(choose(residual, how="plain"), direct.dialect))
        for how in ("factorised", "pruned"):
            plan = choose(residual, statistics, how=how)
            assert direct.scalar(statement_of(plan, direct.dialect)) == plain, how
            if isinstance(plan, Factorised | Pruned):
                stepped.append(plan)
                expected.append(plain)
    assert list(direct.rows(together(stepped, direct.dialect))[0]) == expected


def test_a_name_is_cut_to_what_every_database_keeps() -> None:
    taken: set[str] = set()
    names = [free_name(wanted, taken) for wanted in ["é" * 40, "é" * 40 + "a", "b" * 63, "b" * 64]]
    assert names == ["é" * 31, "é" * 30 + "_2", "b" * 63, "b" * 61 + "_2"]
    assert all(len(name.encode()) <= LONGEST_NAME for name in names)
