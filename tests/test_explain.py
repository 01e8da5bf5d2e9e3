"""What ``explain`` says about the count: the steps of its plan and the reason for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import sqlrs
from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiled import Compiled
from sqlrs.owner.explain import Explanation
from sqlrs.settings import Request, Settings

TRIANGLES = """
SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src
WHERE c.dst = a.src AND a.src <> b.src AND b.src <> c.src AND a.src <> c.src
"""
RETURNS = "SELECT count(*) FROM visit a JOIN visit b USING (person) WHERE a.day < b.day"


@pytest.fixture
def db() -> Iterator[sqlrs.Database]:
    """Tables without rows: plans are explained from the schema alone."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE edge (src INTEGER, dst INTEGER, PRIMARY KEY (src, dst))")
        connection.execute("CREATE TABLE visit (person INTEGER NOT NULL, day DATE)")
        with sqlrs.connect(connection) as database:
            yield database


def count_of(db: sqlrs.Database, sql: str) -> str:
    """The section on the count."""
    [section] = [s for s in str(db.explain(sql)).split("\n\n") if s.startswith("count")]
    return section


def test_one_of_exchangeable_variables_is_above_the_others(db: sqlrs.Database) -> None:
    assert count_of(db, TRIANGLES).splitlines() == [
        "count: factorised",
        "  +3 × count in all: a(a.dst above a.src) ⋈ c(a.src, b.dst) ⋈ b(a.dst above b.dst) "
        "where a.src ≠ b.dst",
        "  reason: there is no boundary: every result counts; "
        "of exchangeable variables the first is the most frequent",
    ]


def test_rows_beyond_a_value_are_a_running_sum(db: sqlrs.Database) -> None:
    assert count_of(db, RETURNS).splitlines() == [
        "count: factorised",
        "  count per (a.day, a.person): b(a.day, a.person, day > a.day)",
        "  count in all: a(a.day, a.person) ⋈ [a.day, a.person]",
        "  reason: there is no boundary: every result counts; "
        "rows beyond a value are a running sum",
    ]


def test_a_public_count_has_no_noise_to_explain() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE region (id INTEGER)")
        with sqlrs.connect(connection, public=["region"]) as database:
            shown = str(database.explain("SELECT count(*) FROM region"))
    assert "noise: none; every table is public, so the count is exact and costs nothing" in shown
    assert "standard error" not in shown


def test_one_set_of_tables_is_one(db: sqlrs.Database) -> None:
    shown = str(db.explain("SELECT count(*) FROM visit"))
    assert "residuals: 1 set of tables, 0 statements to run" in shown


def test_it_begins_with_a_plain_sentence(db: sqlrs.Database) -> None:
    head, *rest = str(db.explain(TRIANGLES)).splitlines()
    assert head == (
        "protects one row of edge; 7 residuals, 1 statement; "
        "typical error 1.99 × what one row can change"
    )
    assert rest[-4] == "words"
    assert "an index" not in "".join(rest)  # DuckDB's joins look nothing up in one
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE region (id INTEGER)")
        with sqlrs.connect(connection, public=["region"]) as database:
            shown = str(database.explain("SELECT count(*) FROM region"))
    assert shown.startswith("protects nobody")


def test_indexes_are_ranked_and_few() -> None:
    integer = ColumnType(Family.INTEGER, "bigint")
    names = ("a", "b", "c", "d", "e")
    columns = tuple(Column(name, integer, nullable=False) for name in names)
    wide = Table("wide", columns, schema="public")
    narrow = Table("narrow", columns[:1], schema="public")
    catalog = Catalog("postgres", (wide, narrow), search_path=("public",))
    sql = (
        "SELECT count(*) FROM wide x JOIN wide y ON x.a = y.a JOIN wide z ON z.a = y.a "
        "JOIN narrow n ON n.a = x.b JOIN narrow m ON m.a = y.c JOIN narrow o ON o.a = z.d"
    )
    residuals = Compiled.of(sql, catalog, Settings()).residuals  # type: ignore[union-attr]
    explanation = Explanation(residuals, Request(sql=sql, epsilon=1).chosen_mechanism(), "postgres")
    hints = [line for line in str(explanation).splitlines() if "an index" in line]
    assert len(hints) == 3
    assert "narrow (a)" in hints[0]


def test_a_statement_is_told_in_one_sentence_first() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE person (id INT PRIMARY KEY, kind VARCHAR NOT NULL)")
        connection.execute(
            "CREATE TABLE visit (id INT PRIMARY KEY, person INT NOT NULL REFERENCES person (id), "
            "cost INT NOT NULL)"
        )
        facts: dict[str, Any] = {
            "bounds": {"visit.cost": [0, 100]},
            "domains": {"person.kind": ["a", "b"]},
        }
        with sqlrs.connect(connection, **facts) as database:
            for sql, told in {
                "SELECT kind, count(*), sum(cost) FROM person JOIN visit ON person.id = person "
                "GROUP BY kind": "protects one row of person or one row of visit; 2 noisy numbers "
                "for each of 2 groups, all at once; typical error 9.35 × what one row can change",
                "SELECT sum(cost) FROM visit": "protects one row of visit; 1 noisy number; "
                "typical error 1.41 × what one row can change",
            }.items():
                assert str(database.explain(sql, 1)).splitlines()[:2] == [told, ""]
        with sqlrs.connect(connection, **facts, unit="person.id") as database:
            head = str(database.explain("SELECT sum(cost) FROM visit", 1)).splitlines()[0]
        assert head.startswith("protects one unit of person.id, with all its rows; 1 noisy number;")
        assert head.endswith("a threshold that is chosen privately")
        with sqlrs.connect(connection, public=["person"]) as database:
            head = str(database.explain("SELECT id % 2, count(*) FROM person GROUP BY 1", 1))
        assert head.startswith("protects nobody: every table is public")
