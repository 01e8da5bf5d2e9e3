"""What runs above the cuts meets released rows only."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sqlrs.engines.released import ReleasedRelation, afterwards, described
from sqlrs.errors import QueryRefused

WARDS = ReleasedRelation(
    "released_0",
    (("k0", "VARCHAR"), ("a0", "BIGINT")),
    (("A", 10), ("B", 30), (None, -2)),
)


def query(sql: str) -> exp.Query:
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    return tree


def test_a_statement_goes_on_over_released_rows() -> None:
    sql = "SELECT k0 AS ward, 100.0 * a0 / sum(a0) OVER () AS share FROM released_0 WHERE a0 > 0"
    found = afterwards(query(f"{sql} ORDER BY 2 DESC"), [WARDS])
    assert found.rows == (("B", 75.0), ("A", 25.0))
    assert found.columns == (("ward", "VARCHAR"), ("share", "DOUBLE"))


def test_the_columns_are_known_beforehand_without_a_row() -> None:
    found = described(query("SELECT k0, a0 / 2 AS half FROM released_0"), [WARDS])
    assert found.columns == (("k0", "VARCHAR"), ("half", "DOUBLE"))
    assert found.rows == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visit",
        "SELECT no_such_function(a0) FROM released_0",
        "SELECT a0 + k0 FROM released_0 WHERE k0 > DATE '2020-01-01' AND k0 < INTERVAL 1 DAY",
    ],
)
def test_what_duckdb_cannot_run_is_refused_beforehand(sql: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        described(query(sql), [WARDS])
    assert refused.value.code == "unsupported"


def test_files_settings_and_python_are_out_of_reach(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("x\n1\n")
    rows = [(1,)]  # noqa: F841 - a variable of this name must not be found
    for sql in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        "SELECT * FROM rows",
        "SELECT getenv('HOME')",
    ):
        with pytest.raises(QueryRefused):
            afterwards(query(sql), [WARDS])


def test_memory_is_bounded() -> None:
    with pytest.raises(QueryRefused):
        afterwards(query("SELECT length(list(range)::VARCHAR) FROM range(200000000)"), [WARDS])
