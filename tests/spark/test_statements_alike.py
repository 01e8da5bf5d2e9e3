"""Groups, sums and units on Spark and DuckDB: with the same random bits, the same answers.

An answer follows from the measured numbers and the bits, so that all measured numbers are the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import sqlrs
from sqlrs.catalog import ColumnType, Family
from sqlrs.database import Database
from sqlrs.noise.randomness import SystemBits
from tests.spark.test_chains import noted
from tests.support.builders import TEXT, table
from tests.support.engine_fixtures import create_table, insert_rows
from tests.support.spark import load

_DATE = ColumnType(Family.DATE, "DATE")
_MONEY = ColumnType(Family.DECIMAL, "DECIMAL(9,2)")
_REAL = ColumnType(Family.FLOAT, "DOUBLE")
_MOMENT = ColumnType(Family.TIMESTAMP, "TIMESTAMP")
TABLES = (
    table(
        "patient", "pid", "city", "born",
        types={"city": TEXT, "born": _DATE}, nullable="pid city born",
    ),
    table(
        "stay", "pid", "ward", "day", "at", "cost", "weight",
        types={"ward": TEXT, "day": _DATE, "at": _MOMENT, "cost": _MONEY, "weight": _REAL},
        nullable="pid ward day at cost weight",
    ),
    table("ward", "name", "floor", types={"name": TEXT}, nullable="name floor"),
)  # fmt: skip
_SEED = 20


def rows(seed: int = _SEED, stays_in_all: int = 60) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each table."""
    draw = random.Random(seed)
    wards = ["a", "b", "c", None]
    stays: list[tuple[object, ...]] = [
        (
            draw.randrange(12),
            draw.choice(wards),
            date(2024, 1, 1 + draw.randrange(28)),
            datetime(2024, 1, 1 + draw.randrange(28), draw.randrange(24)),
            draw.choice([None, Decimal(draw.randrange(5000)) / 100]),
            draw.choice([None, draw.random() * 100, float("nan"), float("inf"), -0.0]),
        )
        for _ in range(stays_in_all)
    ]
    patients: list[tuple[object, ...]] = [
        (i, draw.choice(["x", "y", None]), date(1950 + draw.randrange(60), 2, 3)) for i in range(12)
    ]
    return {"patient": patients, "stay": stays, "ward": [("a", 1), ("b", 1), ("c", 2)]}


def _said(**more: Any) -> dict[str, Any]:
    return {
        "public": ["ward"],
        "keys": {"patient": ["pid"], "ward": ["name"]},
        "domains": {"patient.city": ["x", "y", "z"], "stay.ward": ["a", "b", "q"]},
        "bounds": {
            "stay.cost": (0, 30),
            "stay.weight": (-10, 50, Decimal("0.25")),
            "ward.floor": (0, 3),
        },
        **more,
    }


@contextmanager
def both(target: object) -> Iterator[dict[str, tuple[Database, Database]]]:
    """Spark's and DuckDB's with the same rows, where rows are protected and where units are."""
    other = duckdb.connect()
    for one in TABLES:
        other.execute(create_table(one).sql("duckdb"))
        for row in rows()[one.name]:
            other.execute(insert_rows(one, 1).sql("duckdb"), list(row))
    unit = _said(unit="patient.pid", owners={"stay": "pid"})
    found = {
        "rows": (sqlrs.connect(target, **_said()), sqlrs.connect(other, **_said())),
        "units": (sqlrs.connect(target, **unit), sqlrs.connect(other, **unit)),
    }
    yield found
    for pair in found.values():
        pair[0].close()


@pytest.fixture(scope="module")
def opened(spark: Any) -> Iterator[dict[str, tuple[Database, Database]]]:
    load(spark, TABLES, rows())
    with both(spark) as found:
        yield found


STATEMENTS = {
    "group": "SELECT ward, count(*) AS n FROM stay GROUP BY ward ORDER BY ward NULLS LAST",
    "group_of_join": "SELECT p.city, count(*) AS n, count(s.cost) AS m FROM patient p JOIN stay s "
    "ON p.pid = s.pid GROUP BY p.city HAVING count(*) > -1000 ORDER BY n DESC, 1",
    "group_of_public": "SELECT w.floor, count(*) AS n FROM stay s JOIN ward w ON s.ward = w.name "
    "GROUP BY w.floor ORDER BY 1",
    "sums": "SELECT sum(cost) AS s, avg(cost) AS a, count(*) AS n, sum(weight) AS w FROM stay",
    "sum_of_product": "SELECT sum(s.cost * w.floor) AS n FROM stay s JOIN ward w "
    "ON s.ward = w.name",
    "months": "SELECT year(day) AS y, count(*) AS n FROM stay WHERE day BETWEEN DATE '2024-01-02' "
    "AND DATE '2024-12-30' GROUP BY year(day)",
    "outer_join": "SELECT count(*) AS n FROM patient p LEFT JOIN stay s ON p.pid = s.pid",
    "anti_join": "SELECT count(*) AS n FROM patient p WHERE NOT EXISTS "
    "(SELECT 1 FROM stay s WHERE s.pid = p.pid AND s.ward = 'a')",
    "union": "SELECT count(*) AS n FROM (SELECT pid FROM stay UNION ALL SELECT pid FROM patient) u",
    "distinct": "SELECT count(DISTINCT pid) AS n FROM stay WHERE cost > 3.5 AND at < "
    "TIMESTAMP_NTZ '2024-01-20 12:00:00'",
    "above": "SELECT t.n / 2 AS half, abs(t.n - 10) AS d FROM "
    "(SELECT ward, count(*) AS n FROM stay GROUP BY ward) t WHERE t.n > 0 ORDER BY 1, 2",
}  # fmt: skip
_QUICK = frozenset({"group_of_join", "sums", "outer_join", "largest"})
OF_UNITS = ("group", "group_of_join", "sums", "outer_join", "distinct")
INSIDE_UNITS = {
    "largest": "SELECT count(*) AS n FROM (SELECT pid, max(cost) AS m FROM stay GROUP BY pid) t "
    "WHERE t.m > 20",
    "ranked": "SELECT count(*) AS n FROM (SELECT pid, cost, rank() OVER (PARTITION BY pid "
    "ORDER BY cost DESC) AS r FROM stay) t WHERE t.r <= 2",
    "fractions": "SELECT count(*) AS n FROM (SELECT pid, sum(cost) AS m "
    "FROM stay GROUP BY pid) t WHERE t.m > 20.75",
}


def _in_the_gate(names: Iterable[str]) -> list[Any]:
    """Those that run at every change; the others run at night."""
    return [pytest.param(n, marks=[] if n in _QUICK else [pytest.mark.slow]) for n in names]


def _for_duckdb(sql: str) -> str:
    return sql.replace("TIMESTAMP_NTZ", "TIMESTAMP")


def same_rows(
    pair: tuple[Database, Database], sql: str, monkeypatch: pytest.MonkeyPatch, seed: int = _SEED
) -> list[tuple[object, ...]]:
    """The rows of the answer, which must be the same on both."""
    answers = []
    for database, text in zip(pair, (sql, _for_duckdb(sql)), strict=True):
        bits = random.Random(seed)
        monkeypatch.setattr(SystemBits, "bits", lambda _, count, bits=bits: bits.getrandbits(count))
        answers.append(database.query(text, epsilon=1))
    assert answers[0].rows == answers[1].rows, f"seed {seed}"
    return [tuple(row) for row in answers[0].rows]


@pytest.mark.parametrize("name", _in_the_gate(STATEMENTS))
def test_statements_about_rows(
    opened: dict[str, tuple[Database, Database]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same_rows(opened["rows"], STATEMENTS[name], monkeypatch)


@pytest.mark.parametrize("name", _in_the_gate([*OF_UNITS, *INSIDE_UNITS]))
def test_statements_about_units(
    opened: dict[str, tuple[Database, Database]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same_rows(opened["units"], {**STATEMENTS, **INSIDE_UNITS}[name], monkeypatch)


@pytest.mark.slow
def test_other_rows_are_asked_the_same(spark: Any) -> None:
    """No value and no number of the rows stands in a statement, which Spark's books keep."""
    texts: list[dict[str, list[str]]] = []
    for found in (rows(), rows(77, 35)):
        load(spark, TABLES, found)
        asked = {}
        for unit in ({}, {"unit": "patient.pid", "owners": {"stay": "pid"}}):
            with sqlrs.connect(spark, **_said(**unit)) as database:
                for name in [*OF_UNITS, *INSIDE_UNITS] if unit else STATEMENTS:
                    with noted() as own:
                        database.query({**STATEMENTS, **INSIDE_UNITS}[name], epsilon=1)
                    asked[f"{name}, {unit}"] = [re.sub(r"view_\d+", "view", one) for one in own]
        texts.append(asked)
    assert texts[0] == texts[1]
