"""A declared list of thousands of values is compiled in time that grows with it and no faster."""

from __future__ import annotations

import sys

import duckdb
import pytest

import sqlrs
from sqlrs.compiled import CompiledStatement


def calls(size: int) -> int:
    """How many functions are called to compile a statement by a key of so many values."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit (id INT PRIMARY KEY, ward TEXT)")
    wards = [f"w{i}" for i in range(size)]
    with sqlrs.connect(connection, domains={"visit.ward": wards}) as database:
        count = 0

        def note(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(note)
        try:
            CompiledStatement.of(
                "SELECT ward, count(*) FROM visit GROUP BY ward",
                database.catalog,
                database.settings,
            )
        finally:
            sys.setprofile(None)
    return count


def test_the_work_for_each_value_of_a_list_is_small() -> None:
    calls(10)
    few, more, most = map(calls, (100, 300, 700))
    each = (more - few) / 200
    assert each < 200
    assert (most - more) / 400 == pytest.approx(each, rel=0.1)
