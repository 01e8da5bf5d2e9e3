"""The count that sqlrs runs is the count that the engine gives for the analyst's own text.

Where the engine answers the text, the compiled query gives the same number, without a failure that
the text does not have, or it is refused. Where the engine fails on the text, nothing is asked; nor
where the conditions of one table fail on that table: an engine may try them before it joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import duckdb
import psycopg
import pytest

from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.errors import EngineFailed, QueryRefused
from sqlrs.residuals.residual import Reading, Residuals
from sqlrs.sql.plain import plain
from tests.engines.own_sql import DUCKDB, POSTGRES, Drawer, Tables

SEED = 20261117
ROWS = 12


def _created(tables: Tables, drawer: Drawer) -> list[str]:
    made = []
    for name, columns in tables.items():
        made.append(f"CREATE TABLE {name} ({', '.join(f'{c.name} {c.type}' for c in columns)})")
        made += [f"INSERT INTO {name} VALUES {row}" for row in drawer.rows(name, ROWS)]
    return made


def _compiled_count(sql: str, engine: Engine) -> int | str:
    """The count of the compiled query, or why there is none."""
    try:
        query = compile_query(sql, engine.catalog())
    except QueryRefused:
        return "refused"
    if isinstance(query, Contradiction):
        return 0
    residuals = Residuals(query, Reading.of(query))
    try:
        with engine.snapshot() as snapshot:
            return snapshot.scalar(plain(residuals.of(query.everything)))
    except EngineFailed:
        return "failed"


def _compare(
    drawer: Drawer, number: int, own: Callable[[str], int | None], engine: Engine
) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    wrong = []
    known = engine.catalog()
    engine.catalog = lambda: known  # type: ignore[method-assign]
    for _ in range(number):
        drawn = drawer.query()
        sql, expected = drawn.sql, own(drawn.sql)
        if expected is None:
            outcomes["the text fails"] += 1
            continue
        found = _compiled_count(sql, engine)
        if found == "failed" and any(own(alone) is None for alone in drawn.alone()):
            outcomes["the text may fail"] += 1
            continue
        if found == "refused":
            outcomes["refused"] += 1
        elif found == expected:
            outcomes["zero" if expected == 0 else "same"] += 1
        else:
            wrong.append((sql, expected, found))
    assert wrong == [], f"seed {SEED}: {len(wrong)} of {number}, first {wrong[0]}"
    return outcomes


def _duckdb(number: int, seed: int) -> Counter[str]:
    drawer = Drawer(DUCKDB, seed)
    with duckdb.connect() as connection:
        for statement in _created(DUCKDB, drawer):
            connection.execute(statement)

        def own(sql: str) -> int | None:
            try:
                return int(connection.execute(sql).fetchall()[0][0])
            except duckdb.Error:
                return None

        return _compare(drawer, number, own, open_engine(connection))


def _postgres(number: int, seed: int, url: str) -> Counter[str]:
    drawer = Drawer(POSTGRES, seed)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _created(POSTGRES, drawer):
            connection.execute(statement.encode())

        def own(sql: str) -> int | None:
            try:
                return int(connection.execute(sql.encode()).fetchall()[0][0])
            except psycopg.Error:
                return None

        return _compare(drawer, number, own, open_engine(connection))


def test_duckdb_counts_the_same_for_the_text_and_the_compiled_query() -> None:
    outcomes = _duckdb(250, SEED)
    assert outcomes["same"] > 30 and outcomes["zero"] > 30, outcomes


def test_postgres_counts_the_same_for_the_text_and_the_compiled_query(postgres_db: str) -> None:
    outcomes = _postgres(250, SEED, postgres_db)
    assert outcomes["same"] > 30 and outcomes["zero"] > 30, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED + 1, SEED + 9))
def test_both_engines_count_the_same_for_many_texts(seed: int, postgres_db: str) -> None:
    _duckdb(3000, seed)
    _postgres(3000, seed, postgres_db)
