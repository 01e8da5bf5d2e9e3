"""The owner's word about a column's values: read in its type, refused where it does not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqlrs
from sqlrs.catalog import Bounds, Catalog, Column, Listed, Range, Referred
from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.settings import Settings

TABLES = """
    CREATE SCHEMA other;
    CREATE TABLE ward (name text PRIMARY KEY, id integer);
    CREATE TABLE secret (name text PRIMARY KEY);
    CREATE TABLE visit (
      ward text, age integer, small tinyint, cost decimal(10, 2), weight double, day date,
      moment timestamp, zoned timestamptz, ok boolean, mood ENUM('sad', 'happy'), id uuid,
      folded text COLLATE nocase, checked integer CHECK (checked IN (1, 2)),
      bounded integer CHECK (bounded BETWEEN 0 AND 9), "dotted.name" integer
    );
    CREATE TABLE other.visit (ward text);
    CREATE TABLE other.twice (x text);
    CREATE VIEW seen AS SELECT ward FROM visit;
"""


def declared(**said: Any) -> Catalog:
    connection = duckdb.connect()
    connection.execute(TABLES)
    with sqlrs.connect(connection, public=["ward"], **said) as database:
        return database.catalog


def column_after(name: str, **said: Any) -> Column:
    return declared(**said).named("main.visit").column(name)


OWN = "the owner's domain of visit."


@pytest.mark.parametrize(
    ("column", "said", "values"),
    [
        ("ward", ["A", "B", "", "O'x"], ("A", "B", "", "O'x")),
        ("ward", ("A",), ("A",)),
        ("age", [1, -2], (1, -2)),
        ("cost", [1, 0.1, Decimal("2.50")], (Decimal(1), Decimal("0.1"), Decimal("2.50"))),
        ("day", [date(2024, 1, 2), "2024-02-29"], (date(2024, 1, 2), date(2024, 2, 29))),
        ("moment", [datetime(2024, 1, 2, 3)], (datetime(2024, 1, 2, 3),)),
        ("ok", [True], (True,)),
        ("mood", ["happy"], ("happy",)),
        ("folded", ["a", "b"], ("a", "b")),
        ("checked", [2, 3], (2, 3)),
        ("dotted.name", [7], (7,)),
    ],
)
def test_listed_values_have_the_columns_type(
    column: str, said: object, values: tuple[object, ...]
) -> None:
    found = column_after(column, domains={f"main.visit.{column}": said}).domain
    assert isinstance(found, Listed)
    assert found == Listed(values, f"{OWN}{column}")  # type: ignore[arg-type]
    assert [type(one) for one in found.values] == [type(one) for one in values]


def test_ranges_and_columns() -> None:
    ages = column_after("age", domains={"main.visit.age": {"from": 0, "to": 120}})
    assert ages.domain == Range(0, 120, f"{OWN}age")
    days = column_after("day", domains={"main.visit.day": {"from": "2024-01-01", "to": date.max}})
    assert days.domain == Range(date(2024, 1, 1), date.max, f"{OWN}day")
    wards = column_after("ward", domains={"main.visit.ward": "ward.name"})
    assert wards.domain == Referred(("main", "ward"), "name", f"{OWN}ward")


def test_bounds_are_exact() -> None:
    cost = column_after("cost", bounds={"main.visit.cost": [0, 0.1]})
    assert cost.bounds == Bounds(Decimal(0), Decimal("0.1"), "the owner's bounds of visit.cost")
    weight = column_after("weight", bounds={"main.visit.weight": (0, Decimal(300), 0.1)})
    assert weight.bounds is not None
    assert (weight.bounds.high, weight.bounds.grid) == (Decimal(300), Decimal("0.1"))


def test_the_owners_word_replaces_the_schemas() -> None:
    assert column_after("bounded").domain == Range(0, 9, "CHECK of visit.bounded")
    catalog = declared(domains={"main.visit.bounded": [1]}, bounds={"main.visit.bounded": [0, 100]})
    found = catalog.named("main.visit").column("bounded")
    assert found.domain == Listed((1,), f"{OWN}bounded")
    assert found.bounds == Bounds(Decimal(0), Decimal(100), "the owner's bounds of visit.bounded")
    # Of other columns the schema's word stands.
    assert catalog.named("main.visit").column("checked").domain == Listed(
        (1, 2), "CHECK of visit.checked"
    )


@pytest.mark.parametrize(
    ("said", "told", "hint"),
    [
        ({"domains": {"main.visit.age": ["1"]}}, "does not fit its type INTEGER", "whole numbers"),
        ({"domains": {"main.visit.age": [1.5]}}, "does not fit its type INTEGER", "whole numbers"),
        ({"domains": {"main.visit.age": [True]}}, "does not fit its type INTEGER", None),
        ({"domains": {"main.visit.small": [128]}}, "does not fit its type TINYINT", None),
        ({"domains": {"main.visit.ward": [1]}}, "does not fit its type VARCHAR", "texts"),
        ({"domains": {"main.visit.ward": ["a\0"]}}, "does not fit its type VARCHAR", None),
        ({"domains": {"main.visit.cost": [0.125]}}, "does not fit its type DECIMAL(10,2)", None),
        ({"domains": {"main.visit.cost": ["1"]}}, "does not fit its type DECIMAL(10,2)", None),
        ({"domains": {"main.visit.cost": [10**9]}}, "does not fit its type DECIMAL(10,2)", None),
        ({"domains": {"main.visit.cost": [float("nan")]}}, "must be a finite number", None),
        ({"domains": {"main.visit.day": ["31.12.2024"]}}, "does not fit its type DATE", "2024-"),
        ({"domains": {"main.visit.day": ["2024-02-30"]}}, "does not fit its type DATE", None),
        ({"domains": {"main.visit.day": [datetime(2024, 1, 1)]}}, "does not fit its type", None),
        ({"domains": {"main.visit.ok": [1]}}, "does not fit its type BOOLEAN", "true and false"),
        ({"domains": {"main.visit.mood": ["glad"]}}, "is none of its type", "sad, happy"),
        ({"domains": {"main.visit.weight": [1.0]}}, "cannot be listed: its type is DOUBLE", "TAB"),
        ({"domains": {"main.visit.zoned": ["x"]}}, "cannot be listed", "TABLE.COLUMN"),
        ({"domains": {"main.visit.id": ["x"]}}, "cannot be listed: its type is UUID", None),
        ({"domains": {"main.visit.ward": ["A", None]}}, "lists no NULL", "group of its own"),
        ({"domains": {"main.visit.ward": ["A", "A"]}}, "lists a value twice", "once"),
        ({"domains": {"main.visit.folded": ["a", "A"]}}, "lists a value twice", "once"),
        ({"domains": {"main.visit.ward": []}}, "lists no value", None),
        ({"domains": {"main.visit.ward": {"A", "B"}}}, "is not a domain", '["A", "B"]'),
        ({"domains": {"main.visit.ward": {"from": "A", "to": "B"}}}, "no range", "list the val"),
        ({"domains": {"main.visit.age": {"from": 2, "to": 1}}}, "begins after its end", "swap"),
        ({"domains": {"main.visit.age": {"from": 2}}}, "is not a range", "from = 0"),
        ({"domains": {"visit.ward": ["A"]}}, "can mean several", "main.visit.ward, other.visit"),
        ({"domains": {"main.visit.wards": ["A"]}}, "main.visit has no column wards", "ward, age"),
        ({"domains": {"visits.ward": ["A"]}}, "there is no table visits", None),
        ({"domains": {"seen.ward": ["A"]}}, "seen is a view", None),
        ({"domains": {"ward": ["A"]}}, "'ward' is not the name of a column", "TABLE.COLUMN"),
        ({"domains": {"other.twice.x": ["A"], "twice.x": ["A"]}}, "is given twice", "once"),
        ({"domains": {"main.visit.ward": "secret.name"}}, "main.secret, which is private", "decl"),
        ({"domains": {"main.visit.age": "ward.name"}}, "does not compare with main.visit.age", ""),
        ({"domains": {"main.visit.ward": "ward.nam"}}, "main.ward has no column nam", None),
        ({"domains": {"main.visit.ward": "A"}}, "'A' is not the name of a column", None),
        ({"domains": ["main.visit.ward"]}, "domains must be a mapping", None),
        ({"bounds": {"main.visit.weight": [0, 1]}}, "need a step: its type DOUBLE", "[low, high, "),
        ({"bounds": {"main.visit.cost": [0, 1, 1]}}, "have a step, but its type DECIMAL", None),
        ({"bounds": {"main.visit.ward": [0, 1]}}, "has no bounds: its type is VARCHAR", None),
        ({"bounds": {"main.visit.age": [1, 0]}}, "the lower bound is above", None),
        ({"bounds": {"main.visit.age": [0, float("inf")]}}, "must be a finite number", None),
        ({"bounds": {"main.visit.age": [0, 10**40]}}, "too many digits", None),
        ({"bounds": {"main.visit.weight": [0, 1, -1]}}, "the step is a number above 0", None),
        ({"bounds": {"main.visit.age": "0:1"}}, "are not bounds", "[0, 5000]"),
        ({"bounds": {"main.visit.nothing": [0, 1]}}, "has no column nothing", None),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(said: dict[str, Any], told: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        declared(**said)
    assert told in caught.value.message
    assert hint is None or hint in str(caught.value.hint)


def test_a_catalog_of_objects_can_be_declared() -> None:
    found = declared().declare(
        public=["ward"],
        domains={"main.visit.ward": Listed(("A",), "a test")},
        bounds={"main.visit.age": Bounds(Decimal(0), Decimal(1), "a test")},
    )
    assert found.named("main.visit").column("ward").domain == Listed(("A",), "a test")
    assert found.as_found is not None
    assert found.as_found.named("main.visit").column("ward").domain is None


def test_declared_values_do_not_make_the_schema_another() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit (ward text, cost integer)")
    with sqlrs.connect(
        connection, domains={"visit.ward": ["A"]}, bounds={"visit.cost": [0, 9]}
    ) as database:
        assert database.count("SELECT count(*) FROM visit", 1).value is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [("neighbours", "loose"), ("neighbours", None), ("max_groups", 0), ("max_groups", 1_000_001),
     ("max_groups", True), ("max_groups", 1.5)],
)  # fmt: skip
def test_settings_are_checked(name: str, value: object) -> None:
    assert (Settings().neighbours, Settings().max_groups) == ("strict", 10_000)
    assert Settings(neighbours="add-remove", max_groups=1).neighbours == "add-remove"
    with pytest.raises(UsageError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sqlrs", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_options_and_configuration_say_the_same(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "clinic.db"))
    connection.execute(
        "CREATE TABLE ward (name text); CREATE TABLE visit (ward text, age integer, day date,"
        "weight double, cost decimal(9, 2), one text, checked text CHECK (checked IN ('x', 'y')))"
    )
    connection.close()
    (tmp_path / "sqlrs.toml").write_text(
        """
        [data]
        db = "duckdb:///clinic.db"
        public = ["ward"]
        [domain]
        visit.ward = "ward.name"
        "visit.age" = [1, 2]
        visit.day = { from = 2024-01-01, to = 2024-12-31 }
        visit.one = ["x"]
        [bounds]
        visit.weight = [0, 300, 0.1]
        "main.visit.cost" = [-0.5, 5e3]
        """,
        encoding="utf-8",
    )
    options = [
        *("--db", "duckdb:///clinic.db", "--public", "ward", "--domain", "visit.ward=@ward.name"),
        *("--domain", "visit.age=1,2", "--domain", "visit.day=2024-01-01..2024-12-31"),
        *("--domain", "visit.one=x,", "--bounds", "visit.weight=0:300:0.1"),
        *("--bounds", "main.visit.cost=-0.5,5000"),
    ]
    by_file = run(tmp_path, "tables", "--json", "--config", "sqlrs.toml")
    by_options = run(tmp_path, "tables", "--json", *options)
    assert by_file.returncode == 0, by_file.stderr
    shown = json.loads(by_file.stdout)
    assert shown == json.loads(by_options.stdout)
    columns = {one["name"]: one for one in shown["tables"][0]["columns"]}
    assert columns["age"]["domain"] == {"values": [1, 2], "origin": f"{OWN}age"}
    assert columns["ward"]["domain"]["column"] == "main.ward.name"
    assert columns["day"]["domain"]["to"] == "2024-12-31"
    assert columns["checked"]["domain"]["values"] == ["x", "y"]
    weight = {"low": "0", "high": "300", "step": "0.1"}
    assert columns["weight"]["bounds"].items() >= weight.items()
    text = run(tmp_path, "tables", "--config", "sqlrs.toml").stdout.splitlines()
    assert "  ward     VARCHAR, values of ward.name" in text
    assert "  age      INTEGER, one of 2: 1, 2" in text
    assert "  day      DATE, from 2024-01-01 to 2024-12-31" in text
    assert "  weight   DOUBLE, summed within 0 to 300 by 0.1" in text


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("--domain", "visit.age=A,B", "does not fit its type INTEGER"),
        ("--domain", "visit.age=5", "--domain visit.age '5' is not a domain"),
        ("--domain", "visit.age", "not of the form NAME=VALUE"),
        ("--bounds", "visit.age=5", "are not bounds"),
        ("--bounds", "visit.age=a:b", "is not LOW,HIGH"),
        ("--bounds", "visit.age=nan:1", "is not LOW,HIGH"),
        ("--neighbours", "loose", "neighbours must be one of strict, add-remove"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, option: str, text: str, told: str) -> None:
    connection = duckdb.connect(str(tmp_path / "clinic.db"))
    connection.execute("CREATE TABLE visit (age integer)")
    connection.close()
    done = run(
        tmp_path, "sql", "SELECT count(*) FROM visit", "--db", "duckdb:///clinic.db", option, text
    )
    assert done.returncode == 2
    assert told in done.stderr


def test_the_settings_of_the_file_are_used(tmp_path: Path) -> None:
    (tmp_path / "visit.csv").write_text("ward\nA\n", encoding="utf-8")
    (tmp_path / "sqlrs.toml").write_text(
        "[data]\ntables = {visit = 'visit.csv'}\nneighbours = 'add-remove'\nmax_groups = 7\n",
        encoding="utf-8",
    )
    with Config.read(tmp_path / "sqlrs.toml").open() as database:
        assert database.settings == Settings(neighbours="add-remove", max_groups=7)
