"""DuckDB's optimizers that miscount are off wherever sqlrs counts, and only there."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import islice
from pathlib import Path

import duckdb
import pytest

import sqlrs
from sqlrs.engines.duckdb_optimizers import MISCOUNTING, SETTING
from sqlrs.engines.open import open_engine
from sqlrs.errors import UsageError
from tests.engines.optimizer_fuzz import Drawn, disable, fill, fuzz, statements
from tests.support.gaps import notyet

# Found by the fuzz: DuckDB 1.5.0 and 2.0.0 count 20 with common_subplan on; brute force says 10.
MISCOUNTED = Drawn(
    "SELECT count(*) FROM t0 r0, t0 r1, t0 r2, t0 r3, t0 r4 WHERE r1.b = r0.a AND r2.b = r0.a "
    "AND r3.b = r1.b AND r4.b = r2.a AND r4.a = r1.a",
    ((0, 1), (0, 2), (2, 2), (0, 0), (0, 1)),
)
TRUTH = 10


def disabled(connection: duckdb.DuckDBPyConnection) -> set[str]:
    [(names,)] = connection.execute(f"SELECT current_setting('{SETTING}')").fetchall()
    return {name for name in names.split(",") if name}


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    fill(made, MISCOUNTED)
    return made


@pytest.mark.parametrize(
    "optimizer",
    [
        "off",
        pytest.param(
            "on",
            marks=notyet(
                "duckdb<3",
                "DuckDB's common_subplan miscounts; where it no longer does, take it out of "
                "MISCOUNTING for that version",
                raises=AssertionError,
            ),
        ),
    ],
)
def test_the_engine_counts_the_statement_of_sqlrs_right(
    connection: duckdb.DuckDBPyConnection, optimizer: str
) -> None:
    disable(connection, *(MISCOUNTING if optimizer == "off" else ()))
    _, statement, truth = next(statements(MISCOUNTED, random.Random(1)))
    assert truth == TRUTH
    assert connection.execute(statement.sql(dialect="duckdb")).fetchall() == [(TRUTH,)]


def test_the_true_number_comes_from_a_given_connection(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    with sqlrs.connect(connection) as database:
        assert database.sensitivity(MISCOUNTED.sql, "residual").count == TRUTH


def test_they_are_off_in_every_database_that_sqlrs_opens(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as made:
        fill(made, MISCOUNTED)
    with closing(open_engine(f"duckdb:///{path}")) as engine, engine.snapshot() as snapshot:
        assert disabled(snapshot._connection) >= MISCOUNTING  # type: ignore[attr-defined]
    with sqlrs.connect(f"duckdb:///{path}") as database:
        assert database.sensitivity(MISCOUNTED.sql, "residual").count == TRUTH


def test_a_given_connection_gets_its_setting_back(connection: duckdb.DuckDBPyConnection) -> None:
    disable(connection, "top_n")
    with closing(open_engine(connection)):
        assert disabled(connection) == {"top_n"} | MISCOUNTING
        connection.execute(f"SET {SETTING} = 'regex_range'")
    assert disabled(connection) == {"regex_range"}


def test_what_was_off_before_stays_off(connection: duckdb.DuckDBPyConnection) -> None:
    disable(connection, *MISCOUNTING, "top_n")
    open_engine(connection).close()
    assert disabled(connection) == {"top_n"} | MISCOUNTING


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_engine_of_an_instance_gives_it_back(
    connection: duckdb.DuckDBPyConnection, first: int
) -> None:
    elsewhere = duckdb.connect()
    engines = [open_engine(connection), open_engine(connection.cursor())]
    other = open_engine(elsewhere)
    engines.pop(first).close()
    assert disabled(connection) == MISCOUNTING
    engines.pop().close()
    assert disabled(connection) == set()
    assert disabled(elsewhere) == MISCOUNTING
    other.close()
    assert disabled(elsewhere) == set()


def test_each_snapshot_switches_them_off_again(connection: duckdb.DuckDBPyConnection) -> None:
    with closing(open_engine(connection)) as engine:
        connection.execute(f"RESET {SETTING}")
        with engine.snapshot():
            assert disabled(connection) >= MISCOUNTING


def test_a_locked_connection_with_them_on_is_refused(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute("SET lock_configuration = true")
    with pytest.raises(UsageError, match="counts self-joins wrongly") as caught:
        open_engine(connection)
    assert "common_subplan" in (caught.value.hint or "")


def test_a_locked_connection_with_them_off_is_counted_in(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    disable(connection, *MISCOUNTING)
    connection.execute("SET lock_configuration = true")
    with sqlrs.connect(connection) as database:
        assert database.sensitivity(MISCOUNTED.sql, "residual").count == TRUTH


def test_every_plan_of_the_miscounted_query_is_right_as_sqlrs_runs_it() -> None:
    with duckdb.connect() as connection:
        fill(connection, MISCOUNTED)
        disable(connection, *MISCOUNTING)
        for how, statement, truth in islice(statements(MISCOUNTED, random.Random(1)), 12):
            found = connection.execute(statement.sql(dialect="duckdb")).fetchall()
            assert found == [(truth,)], how


@pytest.mark.slow
def test_no_other_optimizer_miscounts_random_self_joins() -> None:
    found = fuzz(seed=7, seconds=60)
    wrong = {name: number for name, number in found.items() if name.startswith("wrong")}
    assert {n for n in wrong if "all on" not in n} == set(), (found, "seed 7")
