"""Odd arguments of the Python surface: an answer or an error of sqlrs, which costs nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqlrs
from sqlrs.errors import SqlrsError, UsageError

SQL = "SELECT count(*) FROM edge"


class Sullen:
    """An object that cannot even be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("not now")


ODD: list[Any] = [
    *(None, True, False, -1, 0, 1.5, 10**400, float("nan"), float("inf"), 1j, Fraction(1, 3)),
    *(Decimal("sNaN"), Decimal("NaN"), Decimal("Infinity"), Decimal("-0")),
    *("", "\0", "\ud800", "nonsense", "x" * 200_000, "1e99999", b"", b"\xff", bytearray(b"x")),
    *([], ["edge"], [None], (), {}, {"edge": 1}, {"edge": [None]}, set(), range(3), iter([1])),
    *(int, len, object(), Sullen(), lambda: 1, duckdb, Path("/nowhere/at/all")),
    *(sqlrs.MemoryLedger, sqlrs.Settings, sqlrs.Database),
]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        opened.execute("CREATE TABLE edge (src BIGINT, dst BIGINT)")
        opened.execute("INSERT INTO edge VALUES (1, 2), (2, 3)")
        yield opened


Call = Callable[[sqlrs.Database, Any], object]
CALLS: dict[str, Call] = {
    "count": lambda db, odd: db.count(odd, 1),
    "count epsilon": lambda db, odd: db.count(SQL, odd),
    "count mechanism": lambda db, odd: db.count(SQL, 1, mechanism=odd),
    "count shape": lambda db, odd: db.count(SQL, 1, shape=odd),
    "count error_bars": lambda db, odd: db.count(SQL, 1, error_bars=odd),
    "count analyst": lambda db, odd: db.count(SQL, 1, analyst=odd),
    "explain": lambda db, odd: db.explain(odd),
    "explain epsilon": lambda db, odd: db.explain(SQL, odd),
    "explain mechanism": lambda db, odd: db.explain(SQL, mechanism=odd),
    "explain shape": lambda db, odd: db.explain(SQL, shape=odd),
    "explain svg": lambda db, odd: db.explain(SQL).svg(odd),  # type: ignore[union-attr]
    "sql": lambda db, odd: db.sql(odd),
    "sql dialect": lambda db, odd: db.sql(SQL, odd),
    "sensitivity": lambda db, odd: db.sensitivity(odd),
    "sensitivity method": lambda db, odd: db.sensitivity(SQL, odd),
    "sensitivity beta": lambda db, odd: db.sensitivity(SQL, beta=odd),
    "sensitivities": lambda db, odd: db.sensitivities(odd),
    "sensitivities beta": lambda db, odd: db.sensitivities(SQL, odd),
    "settings max_external": lambda db, odd: sqlrs.Settings(max_external=odd),
    "settings plan": lambda db, odd: sqlrs.Settings(plan=odd),
    "settings solver": lambda db, odd: sqlrs.Settings(solver=odd),
    "settings solver_seconds": lambda db, odd: sqlrs.Settings(solver_seconds=odd),
    "ledger total": lambda db, odd: sqlrs.MemoryLedger(odd),
}
CONNECT = (
    *("keys", "ledger", "analyst", "dataset", "settings", "timeout", "functions", "threads"),
    *("memory_limit", "temp_directory", "max_temp_directory_size"),
)


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_errors_of_sqlrs(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    ledger = sqlrs.MemoryLedger()
    with sqlrs.connect(connection, ledger=ledger) as database:
        for odd in ODD:
            answered = len(ledger.history())
            try:
                CALLS[name](database, odd)
            except SqlrsError as error:
                assert str(error) == error.describe()
                assert len(ledger.history()) == answered, "an error cost something"


@pytest.mark.parametrize("name", CONNECT)
def test_odd_arguments_of_connect(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    for odd in ODD:
        try:
            with sqlrs.connect(connection, **{name: odd}) as database:
                database.count(SQL, 1)
        except SqlrsError:
            continue


@pytest.mark.parametrize(
    "name", ["memory_limit", "temp_directory", "max_temp_directory_size", "threads"]
)
def test_odd_limits_of_connect(name: str) -> None:
    for odd in ODD:
        try:
            sqlrs.connect("duckdb://", **{name: odd}).close()
        except SqlrsError:
            continue


def test_odd_databases() -> None:
    for odd in ODD:
        try:
            sqlrs.connect(odd).close()
        except SqlrsError:
            continue


@pytest.mark.parametrize("odd", [5, "x", object(), [len]])
def test_a_progress_that_cannot_be_called_is_refused_before_the_charge(
    connection: duckdb.DuckDBPyConnection, odd: Any
) -> None:
    ledger = sqlrs.MemoryLedger()
    with sqlrs.connect(connection, ledger=ledger) as database:
        with pytest.raises(UsageError):
            database.count(SQL, 1, progress=odd)
        with pytest.raises(UsageError):
            database.sensitivity(SQL, progress=odd)
    assert ledger.history() == ()


def test_an_empty_name_is_no_name_for_somebody_else(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    with sqlrs.connect(connection) as database, pytest.raises(UsageError):
        database.count(SQL, 1, analyst="")


def test_a_refusal_that_nobody_catches_says_everything(tmp_path: Path) -> None:
    program = tmp_path / "ask.py"
    program.write_text(
        "import duckdb, sqlrs\n"
        "connection = duckdb.connect()\n"
        "connection.execute('CREATE TABLE edge (src BIGINT, dst BIGINT)')\n"
        "sqlrs.connect(connection).count(\"SELECT count(*) FROM edge WHERE src = 'x'\", 1)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-4:] == [
        "sqlrs.errors.QueryRefused: type_mismatch: the value does not fit edge.src (BIGINT)",
        "  line 1, column 33: SELECT count(*) FROM edge WHERE src = 'x'",
        "                                                     ^^^^^^^^^",
        "hint: write a number, without quotes",
    ]


@pytest.mark.parametrize(
    "text", ["\n", "\f\n\f(", "\r\r(", "a\u2028b\n(", "\x1b[31m(", "x\n\n\n  "]
)
def test_the_place_is_shown_whatever_the_text_holds(
    connection: duckdb.DuckDBPyConnection, text: str
) -> None:
    with sqlrs.connect(connection) as database, pytest.raises(SqlrsError) as caught:
        database.count(text, 1)
    lines = str(caught.value).split("\n")
    assert len(lines) == 4
    assert not any("\x1b" in line for line in lines)
