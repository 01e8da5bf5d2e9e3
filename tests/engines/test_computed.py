"""Columns that a query computes: read like others in SQL, unknown to the database's own schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import duckdb
import psycopg
import pytest
import sqlglot

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.errors import QueryRefused
from sqlrs.measuring import sampling
from sqlrs.measuring.drift import schema_changed
from sqlrs.measuring.measure import measure
from sqlrs.measuring.tried_constants import check_constants
from sqlrs.owner.frequencies import maximum_frequency
from sqlrs.query import Atom, Filter, Query, Variable
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.elastic import Frequency
from sqlrs.sql.plain import plain

INTEGER = ColumnType(Family.INTEGER, "INTEGER")
BOOLEAN = ColumnType(Family.BOOLEAN, "BOOLEAN")
TEXT = "SELECT count(*) FROM visit"
SCHEMA = """
CREATE TABLE visit (id integer PRIMARY KEY, "Cost" integer, kind text, day date);
INSERT INTO visit VALUES (1, 5, '7', '2024-07-01'), (2, 14, '5', '2024-07-02'), (3, 23, 'x', NULL),
  (4, NULL, '4', NULL);
"""


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "duckdb":
        with duckdb.connect() as duck:
            duck.execute(SCHEMA)
            with closing(open_engine(duck)) as found:
                yield found
        return
    url = request.getfixturevalue("postgres_db")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(SCHEMA.encode())
    with closing(open_engine(url)) as found:
        yield found


def column(name: str, text: str, kind: ColumnType = INTEGER) -> Column:
    return Column(name, kind, computed=sqlglot.parse_one(text, dialect="postgres"))


def computing(catalog: Catalog, *columns: Column) -> Table:
    return catalog.named("visit").with_computed(columns)


def atom(of: Table, alias: str = "v", **terms: str) -> Atom:
    """The key, and the named columns with their variables."""
    named = {"id": f"id_{alias}", **terms}
    return Atom(alias, of, tuple((c, Variable(v, of.column(c).type)) for c, v in named.items()))


def test_a_computed_column_is_joined_filtered_and_output(engine: Engine) -> None:
    of = computing(engine.catalog(), column("rest", '"Cost" % 9'), column("bad", "1 / 0"))
    less = sqlglot.parse_one("rest < 6")
    one = replace(atom(of, rest="r"), filters=(Filter(less, frozenset({"rest"})),))
    other = atom(of, "w", rest="r")
    for found, count in (
        (Query((one,)), 3),
        (Query((one, other)), 9),
        (Query((one, other), distinct=frozenset({Variable("r", INTEGER)})), 1),
        (Query((atom(of),)), 4),
    ):
        residuals = Residuals(found)
        for how in ("plain", "factorised"):
            measured = measure(engine, residuals, residuals.required, plan=how)
            assert measured.count == count


def test_only_what_is_used_is_read(engine: Engine) -> None:
    of = computing(engine.catalog(), column("rest", '"Cost" % 9'), column("bad", "1 / 0"))
    found = Query((atom(of, rest="r"),), distinct=frozenset({Variable("r", INTEGER)}))
    text = plain(Residuals(found).of(found.everything)).sql(engine.dialect)
    assert 'v."Cost" % 9 AS rest' in text
    assert "kind" not in text and "bad" not in text
    bare = Query((atom(of),))
    text = plain(Residuals(bare).of(bare.everything)).sql(engine.dialect)
    assert text.count("SELECT") == 1


def test_statistics_and_frequencies(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails on rows that the query leaves out is not read for statistics."""
    monkeypatch.setattr(sampling, "_SMALL", 0)
    of = computing(engine.catalog(), column("n", "CAST(kind AS INTEGER)"))
    number = Filter(sqlglot.parse_one('"Cost" < 20'), frozenset({"Cost"}))
    atoms = tuple(replace(atom(of, alias, n="n"), filters=(number,)) for alias in "vw")
    found = Query(atoms)
    with engine.snapshot() as snapshot:
        statistics = sampling.read_statistics(snapshot, found)
        assert not any(name == "n" for _, name in statistics.columns)
        whole = computing(engine.catalog(), column("rest", '"Cost" % 9'))
        assert snapshot.scalar(maximum_frequency(Frequency(whole, "rest"))) == 3


def test_constants_are_tried_where_a_column_is_used(engine: Engine) -> None:
    bad = column("late", "day > CAST('2024-06-31' AS DATE)", BOOLEAN)
    good = column("late", "day > CAST('2024-06-30' AS DATE)", BOOLEAN)
    with engine.snapshot() as snapshot:
        for late, used, refused in ((bad, False, False), (good, True, False), (bad, True, True)):
            of = computing(engine.catalog(), late)
            found = Query((atom(of, late="l") if used else atom(of),))
            if not refused:
                check_constants([found], snapshot, engine.dialect, TEXT)
                continue
            with pytest.raises(QueryRefused, match="bad_literal"):
                check_constants([found], snapshot, engine.dialect, TEXT)


def test_plain_texts_in_a_computed_column_are_tried(engine: Engine) -> None:
    of = computing(engine.catalog(), column("late", "day > '2024-06-31'", BOOLEAN))
    with engine.snapshot() as snapshot, pytest.raises(QueryRefused, match="bad_literal"):
        check_constants([Query((atom(of, late="l"),))], snapshot, engine.dialect, TEXT)


def test_a_computed_column_is_no_change_of_the_schema(engine: Engine) -> None:
    catalog = engine.catalog()
    found = Query((atom(computing(catalog, column("rest", '"Cost" % 9')), rest="r"),))
    assert "a view or function" in str(schema_changed(found.tables, catalog))
    stored = catalog.named("visit")
    changed = replace(catalog, tables=(replace(stored, columns=stored.columns[:-1]),))
    assert f"table {stored.label}" in str(schema_changed(found.tables, changed))
