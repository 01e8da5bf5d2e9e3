"""Tables that are fetched from elsewhere: the query over them has the count and every T_E."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

import sqlrs
from sqlrs.catalog import ColumnType, Family, Table
from sqlrs.compiled import CompiledStatement
from sqlrs.engines.base import Measurable, Opened, integers
from sqlrs.engines.duckdb import DuckDBEngine, open_duckdb
from sqlrs.errors import EngineFailed
from sqlrs.measuring import fetching
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.planning.fetched import FetchedQuery, FetchedTable, InRow, fetched_query
from sqlrs.query import Atom, Comparison, Constant, General, Query, Variable, Weight
from sqlrs.residuals.residual import Reading, Residuals
from sqlrs.sensitivity.refined import reached
from sqlrs.sql.fetched_rows import fetched_rows
from tests.engines.test_both import every_residual, labelled, loaded_queries
from tests.planning.adapters import Direct
from tests.planning.strategies import NUMBERS, queries, rows_of, tables
from tests.support import brute
from tests.support.builders import DECIMAL, INTEGER, TEXT, atom, query, table
from tests.support.examples import examples
from tests.support.special import DUCKDB, Line
from tests.support.strategies import TinyDatabase

_MUCH = 2**40
_KINDS = [
    one
    for one in DUCKDB
    if one.type.name in ("BIGINT", "HUGEINT", "DATE", "VARCHAR") and not one.type.collation
]


class Elsewhere(Direct):
    """A snapshot of a DuckDB that is treated as if it were far away; its rows come by Arrow."""

    def __init__(self, direct: Direct, here: DuckDBEngine) -> None:
        super().__init__(direct.connection)
        self.direct = direct
        self.here = here
        self.kept: set[str] = set()
        self.asked: list[exp.Expression] = []
        self.unseen = True

    @property
    def keeps_rows_unseen(self) -> bool:
        return self.unseen

    def rows(self, statement: exp.Expression) -> list[tuple[Any, ...]]:
        self.asked.append(statement)
        return self.direct.rows(statement)

    def size(self, table: Table, texts: Iterable[str]) -> tuple[int, int]:
        lengths = [exp.func("strlen", exp.column(name)) for name in sorted(texts)]
        sums = [exp.func("coalesce", exp.Sum(this=one), exp.Literal.number(0)) for one in lengths]
        select = exp.select(exp.Count(this=exp.Star()), *sums).from_(
            exp.to_table(table.name, db=table.schema)
        )
        rows, *found = integers(self.direct.rows(select))
        return rows, sum(found)

    def fetched(self, statements: Mapping[str, exp.Select], memory: int) -> Measurable:
        assert isinstance(self.connection, duckdb.DuckDBPyConnection)
        for name, statement in statements.items():
            if name not in self.kept:
                text = statement.transform(_encoded).sql("duckdb")
                self.here.take(name, self.connection.sql(text).to_arrow_table())
                self.kept.add(name)
        return self.here

    def forget_fetched(self) -> None:
        self.kept.clear()


def _encoded(node: exp.Expression) -> exp.Expression:
    """A text's bytes in DuckDB's own word: its cast reads a backslash."""
    if isinstance(node, exp.Cast) and node.to.is_type("binary"):
        return exp.Anonymous(this="encode", expressions=[node.this])
    return node


@contextmanager
def elsewhere(direct: Direct) -> Iterator[Elsewhere]:
    here = open_duckdb()
    try:
        yield Elsewhere(direct, here)
    finally:
        here.close()


def over_fetched(of: Query) -> FetchedQuery | None:
    numbers = count()
    return fetched_query(of, lambda _: f"fetched_{next(numbers)}")


def measured_here(snapshot: Elsewhere, of: Residuals, wanted: Iterable[frozenset[int]]) -> Any:
    """All values by fetched tables; nothing else may have been asked of the database elsewhere."""
    found = Measurements(Opened(snapshot, "duckdb"), fetch_limit=_MUCH).enough(of, wanted, None)
    assert not snapshot.asked
    return found.count, dict(found.values)


@pytest.mark.parametrize("line", [NUMBERS, *_KINDS], ids=lambda one: one.type.name)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_fetched_tables_have_every_value(
    on_duckdb: Direct, line: Line, data: st.DataObject
) -> None:
    asked = data.draw(queries(3, line))
    rows = {one.name: data.draw(rows_of(one, line)) for one in tables(line)}
    for one in tables(line):
        on_duckdb.fill(one, rows[one.name])
    if asked.distinct is not None:
        asked = asked.unweighted
    residuals = Residuals(asked)
    wanted = tuple(dict.fromkeys((*residuals.required, *reached(residuals))))
    plain = measure(Opened(on_duckdb, "duckdb"), residuals, wanted, plan="plain")
    with elsewhere(on_duckdb) as snapshot:
        if over_fetched(asked) is None:
            return
        found = measured_here(snapshot, residuals, wanted)
    assert found == (plain.count, dict(plain.values))


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=loaded_queries())
def test_texts_days_and_numbers_have_the_values_of_the_definition(
    on_duckdb: Direct, drawn: tuple[TinyDatabase, Query]
) -> None:
    database, asked = drawn
    rows = labelled(database)
    _create(on_duckdb, database)
    residuals = Residuals(asked, Reading(exact_comparisons=False))
    if over_fetched(asked) is None:
        return
    wanted = [one.members for one in every_residual(asked)]
    parts = residuals.undecided(wanted)
    known = {part.members: brute.residual_value(part, rows) for part in parts}
    with elsewhere(on_duckdb) as snapshot:
        found = measured_here(snapshot, residuals, wanted)
    assert found == (brute.count(asked, rows), residuals.assemble(wanted, known))


def _create(direct: Direct, database: TinyDatabase) -> None:
    for one in database.catalog.tables:
        if one.schema is not None:
            direct.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {one.schema}")
        direct.connection.execute(f"DROP TABLE IF EXISTS {one.label}")
        columns = ", ".join(f"{c.name} {c.type.name}" for c in one.columns)
        direct.connection.execute(f"CREATE TABLE {one.label} ({columns})")
        for row in database.rows[one.identity]:
            marks = ", ".join("?" * len(row))
            direct.connection.execute(f"INSERT INTO {one.label} VALUES ({marks})", row)


EDGE = table("edge", "src", "dst", keys=["src dst"])
NODE = table("node", "id", "name", keys=["id"], types={"name": TEXT}, nullable="name")


def test_conditions_stay_where_the_rows_are() -> None:
    """Constants, conditions of one table and computed columns are in the statements that fetch."""
    young = atom(EDGE, "a", 7, alias="x")
    named = atom(NODE, "b", "n", alias="z"), atom(NODE, "c", "n", alias="w")
    asked = query(young, atom(EDGE, "a", "b", alias="y"), *named)
    found = fetched_query(asked, lambda one: f"fetched_{one.source.alias}")
    assert found is not None
    texts = [fetched_rows(one).sql("spark") for one in found.tables]
    assert texts == [
        "SELECT x.src AS src FROM edge AS x WHERE x.dst = 7",
        "SELECT y.src AS src, y.dst AS dst FROM edge AS y",
        "SELECT z.id AS id, CAST(z.name AS BINARY) AS name FROM node AS z",
    ]
    assert [one.table.name for one in found.query.atoms] == [
        *("fetched_x", "fetched_y"),
        *("fetched_z", "fetched_z"),
    ]
    assert found.query.atoms[0].table.keys == {frozenset({"src"})}
    assert not any(one.filters for one in found.query.atoms)


def test_equal_rows_are_fetched_once() -> None:
    names = iter("ab")
    path = query(atom(EDGE, "a", "b"), atom(EDGE, "b", "c"), atom(EDGE, "a", 1))
    found = fetched_query(path, lambda _: next(names))
    assert found is not None
    assert [one.table.name for one in found.query.atoms] == ["a", "a", "b"]


@pytest.mark.parametrize("lost", ["filters", "constants"])
def test_a_condition_that_is_lost_is_noticed(
    on_duckdb: Direct, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: the comparison of this module sees rows that should not have been fetched."""
    on_duckdb.fill(EDGE, [(a, b) for a in range(4) for b in range(4)])
    below = replace(atom(EDGE, "a", "b", alias="x"), filters=_below(2))
    asked = query(below, atom(EDGE, "b", 1, alias="y"))
    residuals = Residuals(asked)
    plain = measure(Opened(on_duckdb, "duckdb"), residuals, residuals.required, plan="plain")
    expected = plain.count, dict(plain.values)
    with elsewhere(on_duckdb) as snapshot:
        assert measured_here(snapshot, residuals, residuals.required) == expected

    def without(wanted: FetchedTable) -> exp.Select:
        if lost == "filters":
            return fetched_rows(replace(wanted, source=replace(wanted.source, filters=())))
        return fetched_rows(replace(wanted, source=_without_constants(wanted.source)))

    monkeypatch.setattr(fetching, "fetched_rows", without)
    with elsewhere(on_duckdb) as snapshot:
        assert measured_here(snapshot, residuals, residuals.required) != expected


def _below(most: int) -> tuple[Any, ...]:
    from sqlrs.query import Filter

    test = exp.LT(this=exp.column("src"), expression=exp.Literal.number(most))
    return (Filter(test, frozenset({"src"})),)


def _without_constants(of: Atom) -> Atom:
    free = tuple((n, Variable(n, t.type) if isinstance(t, Constant) else t) for n, t in of.terms)
    return replace(of, terms=free)


PRICE = table("price", "id", "cost", types={"cost": DECIMAL})
REAL = ColumnType(Family.FLOAT, "DOUBLE")
MOMENT = ColumnType(Family.TIMESTAMP, "TIMESTAMP")
FOLDED = ColumnType(Family.TEXT, "VARCHAR", "NOCASE")


@pytest.mark.parametrize("kind", [DECIMAL, REAL, MOMENT, FOLDED], ids=lambda one: one.name)
def test_values_that_may_be_others_elsewhere_are_not_fetched(kind: ColumnType) -> None:
    odd = table("odd", "id", "x", types={"x": kind})
    both = query(atom(odd, "i", "x", alias="a"), atom(odd, "j", "x", alias="b"))
    assert over_fetched(both) is None
    # What is not joined stays where it is.
    unread = query(atom(odd, "i", alias="a"), atom(odd, "i", alias="b"))
    assert over_fetched(unread) is not None


def test_what_is_more_than_joined_and_compared_is_not_fetched() -> None:
    a, b, c = (Variable(name, INTEGER) for name in "abc")
    s, t = Variable("s", TEXT), Variable("t", TEXT)
    path = query(atom(EDGE, "a", "b", alias="x"), atom(EDGE, "b", "c", alias="y"))
    named = query(atom(NODE, "i", "s", alias="x"), atom(NODE, "i", "t", alias="y"))
    point = query(atom(EDGE, 1, 2, alias="x"), atom(EDGE, "b", "c", alias="y"))
    heavy = replace(path.atoms[0], table=table("w", "src", "dst", "cost", types={"cost": DECIMAL}))
    heavy = replace(heavy, weight=Weight("cost", 9))
    refused = {
        "one table": query(atom(EDGE, "a", "b")),
        "a predicate of its own": replace(path, generals=(General(exp.true(), (a, b)),)),
        "texts in order": replace(named, comparisons=frozenset({Comparison(s, t, True)})),
        "a fraction": replace(
            path,
            comparisons=frozenset(
                {Comparison(a, Constant(Decimal("1.5"), INTEGER), True), Comparison(c, a, True)}
            ),
        ),
        "a row at most": point,
        "a weight of decimals": replace(path, atoms=(heavy, path.atoms[1])),
    }
    for why, one in refused.items():
        assert over_fetched(one) is None, why
    days = replace(path, comparisons=frozenset({Comparison(a, Constant(5, INTEGER), True)}))
    assert over_fetched(days) is not None
    assert over_fetched(path) is not None


def test_comparisons_within_a_row_stay_where_it_is() -> None:
    """With them go columns that nothing else needs, whatever their type is."""
    sale = table("sale", "id", "cost", "low", "high", keys=["id"], types={"cost": DECIMAL})
    x = atom(sale, "i", "c", "l", "h", alias="x")
    y = atom(sale, "j", "d", "l", "k", alias="y")
    c, low, high = Variable("c", DECIMAL), Variable("l", INTEGER), Variable("h", INTEGER)
    two, one_half = Constant(2, INTEGER), Constant(Decimal("0.5"), DECIMAL)
    within = {Comparison(one_half, c, True), Comparison(low, two, False)}
    asked = replace(query(x, y), comparisons=frozenset(within))
    found = over_fetched(asked)
    assert found is not None and not found.query.comparisons
    below = InRow("low", two, False)
    assert [one.compared for one in found.tables] == [
        frozenset({InRow(one_half, "cost", True), below}),
        frozenset({below}),
    ]
    assert [[one.name for one in t.table.columns] for t in found.tables] == [["id", "low"]] * 2
    assert [fetched_rows(one).sql("duckdb") for one in found.tables][1] == (
        "SELECT y.id AS id, y.low AS low FROM sale AS y WHERE y.low <= 2"
    )
    # l is compared with another row's value as well: then x may not lose what is said of it.
    tied = Comparison(low, high, True)
    apart = query(replace(x, terms=x.terms[:3]), replace(y, terms=(y.terms[0], ("high", high))))
    found = over_fetched(replace(apart, comparisons=frozenset({*within, tied})))
    assert found is not None
    assert found.query.comparisons == {Comparison(low, two, False), tied}


def test_days_are_compared_with_constants() -> None:
    day = ColumnType(Family.DATE, "DATE")
    visit = table("visit", "person", "at", types={"at": day})
    asked = query(atom(visit, "p", "d", alias="x"), atom(visit, "p", "e", alias="y"))
    since = Comparison(Constant(date(2024, 1, 1), day), Variable("d", day), False)
    found = replace(asked, comparisons=frozenset({since}))
    assert over_fetched(found) is not None


PATH = Residuals(query(atom(EDGE, "a", "b"), atom(EDGE, "b", "c"), different="a c"))


def test_larger_tables_are_left_where_they_are(on_duckdb: Direct) -> None:
    on_duckdb.fill(EDGE, [(a, b) for a in range(5) for b in range(5)])
    size = 25 * 2 * 8
    for limit, here in ((size, True), (size - 1, False), (0, False)):
        with elsewhere(on_duckdb) as snapshot:
            measurements = Measurements(Opened(snapshot, "duckdb"), fetch_limit=limit)
            found = measurements.enough(PATH, PATH.required, None)
            assert bool(snapshot.kept) is here
            assert bool(snapshot.asked) is not here
            assert found.count == 5 * 5 * 4


def test_rows_that_others_could_see_on_the_way_are_not_fetched(on_duckdb: Direct) -> None:
    on_duckdb.fill(EDGE, [(1, 2), (2, 3)])
    with elsewhere(on_duckdb) as snapshot:
        snapshot.unseen = False
        assert Measurements(Opened(snapshot, "duckdb"), fetch_limit=_MUCH).count(PATH) == 1
        assert snapshot.asked and not snapshot.kept


def test_a_plan_that_is_asked_for_runs_where_the_rows_are(on_duckdb: Direct) -> None:
    on_duckdb.fill(EDGE, [(1, 2), (2, 3)])
    with elsewhere(on_duckdb) as snapshot:
        measurements = Measurements(Opened(snapshot, "duckdb"), "factorised", fetch_limit=_MUCH)
        assert measurements.count(PATH) == 1
        assert snapshot.asked and not snapshot.kept


def test_what_has_no_room_here_is_measured_there(
    on_duckdb: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_duckdb.fill(EDGE, [(1, 2), (2, 3)])

    def full(*_: object) -> None:
        raise EngineFailed("no room", code="out_of_memory")

    monkeypatch.setattr(DuckDBEngine, "take", full)
    with elsewhere(on_duckdb) as snapshot:
        measurements = Measurements(Opened(snapshot, "duckdb"), fetch_limit=_MUCH)
        assert measurements.count(PATH) == 1
        assert snapshot.asked

    def broken(*_: object) -> None:
        raise EngineFailed("broken")

    monkeypatch.setattr(DuckDBEngine, "take", broken)
    with elsewhere(on_duckdb) as snapshot, pytest.raises(EngineFailed, match="broken"):
        Measurements(Opened(snapshot, "duckdb"), fetch_limit=_MUCH).count(PATH)


def test_arrow_is_read_in_a_process_that_has_only_the_core() -> None:
    program = """
import pyarrow, sys
from sqlrs.engines.duckdb import open_duckdb

assert "duckdb" not in sys.modules
here = open_duckdb()
here.take("t", pyarrow.table({"a": [1, 2]}))
with here.snapshot() as snapshot:
    print(snapshot.run("SELECT sum(a) FROM t"))
"""
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[(3,)]\n", "")


def test_a_sum_of_distinct_outputs_is_left_where_the_rows_are() -> None:
    """No residual is measured with its weights, so that there is no count of them either."""
    sql = (
        "SELECT count(*), sum(a.cost) FROM visit a WHERE EXISTS "
        "(SELECT 1 FROM visit b WHERE a.person = b.person AND a.kind <> b.kind)"
    )
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visit (id INT PRIMARY KEY, person INT, cost INT, kind INT)"
        )
        connection.execute("INSERT INTO visit SELECT i, i % 4, i, i % 3 FROM range(9) AS s(i)")
        with sqlrs.connect(connection, bounds={"visit.cost": [0, 90]}) as database:
            compiled = CompiledStatement.of(sql, database.catalog, database.settings)
        terms = [(one, asked[0]) for asked, own in compiled.asked.items() for one in own]
        with elsewhere(Direct(connection)) as snapshot:
            found = []
            for limit in (0, _MUCH):
                source = Opened(snapshot, "duckdb")
                measurements = Measurements(source, fetch_limit=limit)
                found.append([measurements.totals(t.signed, t.residuals, d) for t, d in terms])
    assert found[0] == found[1]
    assert any(any(one.values()) for one in found[0])
