"""Sums in the type of their column: held between their ends, signed, without NULL, exact."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

import sqlrs
from sqlrs.compiled import CompiledStatement
from sqlrs.engines.base import Opened
from sqlrs.measuring.measurements import Measurements

VALUES: list[tuple[object, ...]] = [
    (1, "0.01", "99999999999999999.9", 3, -128),
    (2, "-5.00", "-0.1", -2, 127),
    (3, "-5.01", "12.3", -3, 0),
    (4, "10.00", None, 7, None),
    (5, "9999999.99", "-99999999999999999.9", 2**63 - 1, 5),
    (6, "-9999999.99", "7", -(2**63), -6),
    (7, None, "0", None, 1),
    (8, "9.99", "0.1", 0, -1),
]
BOUNDS = {"t.a": (-5, 10), "t.b": (-100, 13), "t.c": (-2, 7), "t.d": (-200, 200)}
COLUMNS = {"t.a": 1, "t.b": 2, "t.c": 3, "t.d": 4}


@pytest.mark.parametrize("name", sorted(BOUNDS))
@pytest.mark.parametrize("bounds", [None, (0, 6), (-3, 0)])
def test_a_sum_is_that_of_the_held_values(name: str, bounds: tuple[int, int] | None) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a DECIMAL(9, 2), b DECIMAL(18, 1), c BIGINT, "
        "d TINYINT)"
    )
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", VALUES)
    low, high = bounds or BOUNDS[name]
    held = [
        Fraction(Decimal(str(row[COLUMNS[name]])))
        for row in VALUES
        if row[COLUMNS[name]] is not None
    ]
    expected = sum(min(max(value, Fraction(low)), Fraction(high)) for value in held)
    with sqlrs.connect(connection, bounds={name: (low, high)}) as database:
        sql = f"SELECT sum({name[2:]}) FROM t"
        compiled = CompiledStatement.of(sql, database.catalog, database.settings)
        (((_, measure), terms),) = compiled.asked.items()
        with database.engine.snapshot() as snapshot:
            measurements = Measurements(Opened(snapshot, "duckdb"))
            found = sum(
                one.signed.coefficient
                * measurements.totals(one.signed, one.residuals, ()).get((), 0)
                for one in terms
            )
    assert found * measure.unit == expected
