"""What a release reads once and keeps: the numbers that each has alone, and nobody else sees."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from threading import Event

import duckdb
import psycopg
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.catalog import Catalog, Routine
from sqlrs.compiled import Compiled, CompiledStatement
from sqlrs.compiler.compile import compile_query
from sqlrs.engines.base import Opened, Row, Snapshot, one_integer
from sqlrs.engines.started_ahead import StartedAhead
from sqlrs.errors import QueryRefused
from sqlrs.measures import Ordinals
from sqlrs.measuring import work
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.sampling import SampledTables
from sqlrs.measuring.work import Values
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.query import Query, Variable
from sqlrs.recent_statements import RecentStatements
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.weighted import counted, needs_sums, sum_reached
from sqlrs.settings import Request
from sqlrs.sql.side_by_side import SideBySide

SEED = 20260
TABLES = """
CREATE TABLE home (h_id INTEGER PRIMARY KEY, h_name VARCHAR NOT NULL);
CREATE TABLE person (p_id INTEGER PRIMARY KEY, p_home INTEGER NOT NULL, p_kind INTEGER,
    p_pay DECIMAL(12, 2), p_old DECIMAL(38, 3));
CREATE TABLE visit (v_id INTEGER PRIMARY KEY, v_person INTEGER, v_cost INTEGER, v_kind INTEGER);
"""
STATEMENTS = [
    "SELECT p_kind, count(*), sum(p_pay), avg(p_pay) FROM person GROUP BY p_kind",
    "SELECT count(*), count(p_pay), sum(p_pay), sum(p_old), sum(p_pay) FROM person",
    "SELECT h_name, count(*), sum(v_cost), avg(v_cost) FROM visit JOIN person ON v_person = p_id "
    "JOIN home ON p_home = h_id GROUP BY h_name",
    "SELECT p_kind, count(*), sum(v_cost * p_pay) FROM visit JOIN person ON v_person = p_id "
    "GROUP BY p_kind",
    "SELECT sum(v_cost), count(*) FROM visit WHERE v_kind > 0",
    "SELECT a.v_kind, count(*), sum(a.v_cost), sum(b.v_cost) FROM visit a JOIN visit b "
    "ON a.v_person = b.v_person AND a.v_kind = b.v_kind AND a.v_id <> b.v_id GROUP BY a.v_kind",
    "SELECT count(*), sum(a.v_cost) FROM visit a WHERE EXISTS (SELECT 1 FROM visit b "
    "WHERE a.v_person = b.v_person AND a.v_kind <> b.v_kind)",
]
LISTED = {"person.p_kind": [0, 1, 2], "visit.v_kind": [0, 1, 2]}
BOUNDS = {
    "person.p_pay": [-500, 10**9],
    "person.p_old": [0, 10**14],
    "visit.v_cost": [-40, 90],
}


def rows(draw: random.Random) -> dict[str, list[Row]]:
    """Few values, NULL among them, and some outside their bounds."""

    def some(*values: object) -> object:
        return draw.choice(values)

    return {
        "home": [(i, some("north", "south", "west")) for i in range(4)],
        "person": [
            (
                i,
                draw.randrange(5),
                some(None, 0, 1, 2, 3),
                some(None, "-7.25", "0.01", "-999.99", "1999999999.99"),
                some(None, "1.125", "999999999999999.999", "-3"),
            )
            for i in range(draw.randrange(12))
        ],
        "visit": [
            (i, some(None, *range(10)), some(None, -50, -1, 0, 7, 95), some(None, 0, 1, 2, 7))
            for i in range(draw.randrange(30))
        ],
    }


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def opened(request: pytest.FixtureRequest) -> Iterator[tuple[sqlrs.Database, object]]:
    with ExitStack() as stack:
        if request.param == "duckdb":
            writer: object = duckdb.connect()
            target = writer
        else:
            target = stack.enter_context(request.getfixturevalue("postgres_server").database())
            writer = psycopg.connect(target, autocommit=True)
            stack.callback(writer.close)
        for text in filter(str.strip, TABLES.split(";")):
            writer.execute(text)  # type: ignore[attr-defined]
        database = sqlrs.connect(target, public=["home"], domains=LISTED, bounds=BOUNDS)
        yield stack.enter_context(database), writer


def fill(writer: object, tables: dict[str, list[Row]]) -> None:
    for name, found in tables.items():
        texts = [exp.Tuple(expressions=[exp.convert(one) for one in row]).sql() for row in found]
        writer.execute(f"DELETE FROM {name}")  # type: ignore[attr-defined]
        if texts:
            statement = f"INSERT INTO {name} VALUES {', '.join(texts)}"
            writer.execute(statement)  # type: ignore[attr-defined]


def measured(
    database: sqlrs.Database, compiled: CompiledStatement, *, plan: str, ahead: bool
) -> list[tuple[dict[Ordinals, int], list[object]]]:
    """The totals of every term, and every T_E that its bound needs."""
    terms = [(one, asked[0]) for asked, own in compiled.asked.items() for one in own]
    with database.engine.snapshot() as snapshot:
        measurements = Measurements(Opened(snapshot, database.engine.dialect), plan)
        if ahead:
            measurements.read_ahead((one.signed, one.residuals, own) for one, own in terms)
        return [
            (
                dict(measurements.totals(one.signed, one.residuals, domains)),
                values_of(one, measurements),
            )
            for one, domains in terms
        ]


def values_of(summand: Summand, measurements: Measurements) -> list[object]:
    residuals = summand.residuals
    wanted = sum_reached(residuals)
    kinds = [counted(residuals), *([residuals] if needs_sums(residuals.query) else [])]
    return [dict(measurements.values(one, wanted, None)) for one in kinds]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_is_read_at_once_is_what_each_has_alone(
    opened: tuple[sqlrs.Database, object], sql: str
) -> None:
    database, writer = opened
    compiled = CompiledStatement.of(sql, database.catalog, database.settings)
    for number in range(2):
        fill(writer, rows(random.Random(SEED + number)))
        together = measured(database, compiled, plan="auto", ahead=True)
        assert together == measured(database, compiled, plan="auto", ahead=False)
        assert together == measured(database, compiled, plan="plain", ahead=False)


def test_a_statement_reads_each_table_once(opened: tuple[sqlrs.Database, object]) -> None:
    database, _ = opened
    sql = "SELECT p_kind, count(*), sum(p_pay) FROM person GROUP BY p_kind"
    compiled = CompiledStatement.of(sql, database.catalog, database.settings)
    with database.engine.snapshot() as snapshot:
        counting = CountingSnapshot(snapshot)
        measurements = Measurements(Opened(counting, database.engine.dialect))
        terms = [(one, asked[0]) for asked, own in compiled.asked.items() for one in own]
        measurements.read_ahead((one.signed, one.residuals, own) for one, own in terms)
        for one, domains in terms:
            measurements.totals(one.signed, one.residuals, domains)
    assert len(terms) > 2
    assert len(counting.statements) == 1


NEVER = """
SELECT count(*) FROM person JOIN visit a ON a.v_person = p_id AND a.v_cost < 90
WHERE EXISTS (SELECT 1 FROM visit b WHERE b.v_person = p_id AND b.v_kind <> a.v_kind)
  AND NOT EXISTS (SELECT 1 FROM visit c WHERE c.v_person = p_id AND c.v_cost > 5)
"""


def test_what_took_long_is_read_once_for_all_terms(
    opened: tuple[sqlrs.Database, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Visits among others, less those of who paid: both need one person's among others."""
    database, writer = opened
    compiled = CompiledStatement.of(NEVER, database.catalog, database.settings)
    terms = [(one, asked[0]) for asked, own in compiled.asked.items() for one in own]
    assert len(terms) == 2
    fewer = 0
    for number in range(6):
        fill(writer, rows(random.Random(SEED + number)))
        written = []
        folded = []
        for plan, long in (("plain", 1e9), ("auto", 1e9), ("auto", 0.0)):
            monkeypatch.setattr(work, "_LONG", long)
            with database.engine.snapshot() as snapshot:
                counting = CountingSnapshot(snapshot)
                measurements = Measurements(Opened(counting, database.engine.dialect), plan)
                measurements.read_ahead((one.signed, one.residuals, own) for one, own in terms)
                found = [
                    measurements.enough(one.residuals, sum_reached(one.residuals), every_value)
                    for one, _ in terms
                ]
            folded.append([(one.count, every_value(one.values)) for one in found])
            written.append(sum(map(len, counting.statements)))
        assert folded[0] == folded[1] == folded[2]
        assert written[2] <= written[1]
        fewer += written[2] < written[1]
    assert fewer


SUMS = """
SELECT sum(CASE WHEN a.v_cost > 5 THEN 7 ELSE 0 END), sum(CASE WHEN a.v_kind = 1 THEN 7 ELSE 0 END)
FROM visit a JOIN visit b ON a.v_person = b.v_person AND a.v_id <> b.v_id
"""


def test_what_two_sums_weigh_by_is_not_taken_for_the_same(
    opened: tuple[sqlrs.Database, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both weigh by a computed column of one name and bound, which is another one in each."""
    monkeypatch.setattr(work, "_LONG", 0.0)
    database, writer = opened
    compiled = CompiledStatement.of(SUMS, database.catalog, database.settings)
    terms = [(one, asked[0]) for asked, own in compiled.asked.items() for one in own]
    weighted = [one.residuals for one, _ in terms if one.residuals.query.weighted]
    assert len(weighted) == 2
    apart = 0
    for number in range(6):
        fill(writer, rows(random.Random(SEED + number)))
        found = []
        for plan in ("plain", "auto"):
            with database.engine.snapshot() as snapshot:
                measurements = Measurements(Opened(snapshot, database.engine.dialect), plan)
                measurements.read_ahead((one.signed, one.residuals, own) for one, own in terms)
                values = [
                    measurements.values(one, sum_reached(one), every_value) for one in weighted
                ]
            found.append([every_value(one) for one in values])
        assert found[0] == found[1]
        apart += found[0][0] != found[0][1]
    assert apart


def every_value(values: Values) -> Fraction:
    """A fold that every value moves, each in its own way."""
    by_place = sorted(values.items(), key=lambda one: sorted(one[0]))
    return Fraction(sum(value * 3**place for place, (_, value) in enumerate(by_place)))


class CountingSnapshot:
    """A snapshot that keeps the statements."""

    def __init__(self, own: Snapshot) -> None:
        self._own = own
        self.statements: list[str] = []

    def rows(self, statement: exp.Expression) -> list[Row]:
        self.statements.append(statement.sql())
        return self._own.rows(statement)

    def scalar(self, statement: exp.Expression) -> int:
        return one_integer(self.rows(statement))

    def catalog(self) -> Catalog:
        return self._own.catalog()

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        return self._own.routines(names)

    def interrupt(self) -> None:
        self._own.interrupt()


def test_totals_of_other_queries_or_groups_are_not_taken(
    opened: tuple[sqlrs.Database, object],
) -> None:
    """An equal query is not the one that was read: only the very same one is."""
    database, writer = opened
    fill(writer, rows(random.Random(SEED)))
    compiled = CompiledStatement.of(STATEMENTS[0], database.catalog, database.settings)
    (domains, _), terms = next(iter(compiled.asked.items()))
    with database.engine.snapshot() as snapshot:
        measurements = Measurements(Opened(snapshot, database.engine.dialect))
        everything = [
            (one.signed, one.residuals, asked[0])
            for asked, own in compiled.asked.items()
            for one in own
        ]
        measurements.read_ahead(everything)
        known = measurements.read[id(terms[0].signed)]
        assert known.of(terms[0].signed, domains)
        assert not known.of(replace(terms[0].signed), domains)
        assert not known.of(terms[0].signed, [replace(one) for one in domains])


def test_an_engine_that_begins_anew_each_time_keeps_nothing(
    opened: tuple[sqlrs.Database, object],
) -> None:
    database, _ = opened
    compiled = CompiledStatement.of(STATEMENTS[0], database.catalog, database.settings)
    measurements = Measurements(database.engine)
    measurements.read_ahead(
        (one.signed, one.residuals, asked[0])
        for asked, own in compiled.asked.items()
        for one in own
    )
    assert not measurements.read
    assert not measurements.beside.sums


EDGES = "CREATE TABLE edge (src INTEGER NOT NULL, dst INTEGER NOT NULL, PRIMARY KEY (src, dst))"


@pytest.fixture
def graph() -> Iterator[sqlrs.Database]:
    writer = duckdb.connect()
    writer.execute(EDGES)
    writer.execute("INSERT INTO edge SELECT i, i * 7 % 1000 FROM range(3000) AS r(i)")
    with sqlrs.connect(writer) as database:
        yield database


def path(database: sqlrs.Database) -> Query:
    sql = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
    found = compile_query(sql, database.catalog)
    assert isinstance(found, Query)
    return found


def test_a_table_is_sampled_once_in_a_snapshot_and_anew_in_the_next(graph: sqlrs.Database) -> None:
    sampled, query = SampledTables(), path(graph)
    for _ in range(2):
        with graph.engine.snapshot() as snapshot:
            counting = CountingSnapshot(snapshot)
            first = Evaluator(counting, query, "duckdb", sampled=sampled).statistics
            assert len(counting.statements) == 2
            again = Evaluator(counting, query, "duckdb", sampled=sampled).statistics
            assert again == first
            assert len(counting.statements) == 2


def test_which_joins_have_no_more_rows_than_one_table(
    opened: tuple[sqlrs.Database, object], graph: sqlrs.Database
) -> None:
    database, _ = opened
    found = [
        joins_by_keys(
            CompiledStatement.of(sql, database.catalog, database.settings).queries[0].atoms
        )
        for sql in STATEMENTS
    ]
    assert found == [True, True, True, True, True, False, False]
    assert not joins_by_keys(path(graph).atoms)


def test_queries_that_differ_in_more_than_weights_are_not_read_together(
    opened: tuple[sqlrs.Database, object],
) -> None:
    database, _ = opened

    def first(sql: str) -> Query:
        return CompiledStatement.of(sql, database.catalog, database.settings).queries[0]

    some = first("SELECT sum(v_cost) FROM visit WHERE v_kind > 0")
    found = first("SELECT count(v_cost) FROM visit WHERE v_kind > 0")
    assert SideBySide.of([some, found]) is None
    other = first("SELECT sum(v_cost + 1) FROM visit WHERE v_kind > 0")
    together = SideBySide.of([some, other, some])
    assert together is not None
    assert len({own for own in together.weights}) == 2
    assert SideBySide.of([some, first("SELECT sum(v_cost) FROM visit WHERE v_kind > 1")]) is None


def test_residuals_are_alike_only_where_their_keys_are(graph: sqlrs.Database) -> None:
    query = path(graph)
    residuals = Residuals(query)
    parts = [residuals.of(frozenset({place})) for place in (0, 1)]
    key = next(v for v in query.atoms[0].variables if v in query.atoms[1].variables)
    assert isinstance(key, Variable)
    alone = next(v for v in query.atoms[0].variables if v != key)
    symmetric = compile_query(
        "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.dst", graph.catalog
    )
    assert isinstance(symmetric, Query)
    both = [Residuals(symmetric).of(frozenset({place})) for place in (0, 1)]
    shared = next(v for v in symmetric.atoms[0].variables if v in symmetric.atoms[1].variables)
    own = next(v for v in symmetric.atoms[0].variables if v != shared)
    assert len({id(one) for one in representatives(both).values()}) == 1
    assert len({id(one) for one in representatives(both, [shared]).values()}) == 1
    assert len({id(one) for one in representatives(both, [own]).values()}) == 2
    assert len({id(one) for one in representatives(parts, [alone]).values()}) == 2


def test_a_statement_is_kept_for_its_analyst_and_catalog(graph: sqlrs.Database) -> None:
    recent = RecentStatements()
    request = Request(sql="SELECT count(*), count(*) FROM edge", epsilon=1, analyst="a")
    first = recent.of(request, graph.catalog, graph.settings)
    assert recent.of(replace(request, epsilon=2), graph.catalog, graph.settings) is first
    others = [
        (replace(request, analyst="b"), graph.catalog, graph.settings),
        (replace(request, sql=f"{request.sql} "), graph.catalog, graph.settings),
        (request, replace(graph.catalog), graph.settings),
        (request, graph.catalog, replace(graph.settings)),
    ]
    for other in others:
        assert recent.of(*other) is not first


def test_a_count_is_kept_for_its_analyst_and_catalog(graph: sqlrs.Database) -> None:
    recent = RecentStatements()
    request = Request(sql="SELECT count(*) FROM edge", epsilon=1, analyst="a")
    first = recent.count(request, graph.catalog, graph.settings)
    assert recent.count(replace(request, epsilon=2), graph.catalog, graph.settings) is first
    others = [
        (replace(request, analyst="b"), graph.catalog, graph.settings),
        (replace(request, as_rows=True), graph.catalog, graph.settings),
        (request, replace(graph.catalog), graph.settings),
        (request, graph.catalog, replace(graph.settings)),
    ]
    for other in others:
        assert recent.count(*other) is not first
        # Only one thing differs from what is kept.
        first = recent.count(request, graph.catalog, graph.settings)
    # As a statement it is another thing, and it is never taken for the count.
    assert isinstance(recent.of(request, graph.catalog, graph.settings), CompiledStatement)
    assert isinstance(recent.count(request, graph.catalog, graph.settings), Compiled)


def test_a_count_that_is_a_statement_is_compiled_once(graph: sqlrs.Database) -> None:
    recent = RecentStatements()
    sql = "SELECT count(*) FROM edge a WHERE NOT EXISTS (SELECT 1 FROM edge b WHERE a.dst = b.src)"
    request = Request(sql=sql, epsilon=1)
    first = recent.count(request, graph.catalog, graph.settings)
    assert isinstance(first, CompiledStatement)
    assert recent.of(request, graph.catalog, graph.settings) is first


def test_what_is_kept_does_not_tell_how_much_others_ask(graph: sqlrs.Database) -> None:
    recent = RecentStatements()
    request = Request(sql="SELECT count(*) FROM edge", epsilon=1, analyst="a")
    first = recent.count(request, graph.catalog, graph.settings)
    for number in range(70):
        other = Request(f"SELECT count(*) FROM edge WHERE src > {number}", 1, analyst="b")
        recent.count(other, graph.catalog, graph.settings)
    assert recent.count(request, graph.catalog, graph.settings) is first
    # One's own texts are as few as before, and there are not always more analysts.
    kept = recent.count(other, graph.catalog, graph.settings)
    for number in range(70):
        another = replace(request, sql=f"SELECT count(*) FROM edge WHERE src > {number}")
        recent.count(another, graph.catalog, graph.settings)
        if number > 60:
            recent.count(replace(request, analyst=f"c{number}"), graph.catalog, graph.settings)
    assert recent.count(request, graph.catalog, graph.settings) is not first
    assert recent.count(other, graph.catalog, graph.settings) is kept
    for number in range(70):
        recent.count(replace(request, analyst=f"c{number}"), graph.catalog, graph.settings)
    assert recent.count(other, graph.catalog, graph.settings) is not kept


def test_long_texts_are_kept_while_they_are_few(graph: sqlrs.Database) -> None:
    recent = RecentStatements()
    long = " " * 9_000
    requests = [Request(f"SELECT count(*) FROM edge WHERE src > {i}{long}", 1) for i in range(9)]
    found = [recent.count(one, graph.catalog, graph.settings) for one in requests]
    again = [recent.count(one, graph.catalog, graph.settings) for one in reversed(requests)]
    kept = [one is other for one, other in zip(found, reversed(again), strict=True)]
    assert kept == [False, False, *[True] * 7]


def test_a_kept_count_is_refused_where_the_owner_refuses_it(graph: sqlrs.Database) -> None:
    recent = RecentStatements()
    request = Request(sql="SELECT count(*) FROM edge", epsilon=1)
    recent.count(request, graph.catalog, graph.settings)
    refused = replace(graph.settings, refused_queries=("SELECT count(*) FROM edge e",))
    for _ in range(2):
        with pytest.raises(QueryRefused):
            recent.count(request, graph.catalog, refused)


class Started:
    """A connection that knows whether it is closed."""

    def __init__(self) -> None:
        self.closed = Event()

    def close(self) -> None:
        self.closed.set()


def test_each_that_was_started_ahead_has_one_user_at_a_time() -> None:
    made: list[Started] = []

    def start() -> Started:
        made.append(Started())
        return made[-1]

    ahead = StartedAhead(start)
    ahead.begin()
    ahead.begin()
    one, other = ahead.take(), ahead.take()
    assert one is not other
    assert made == [one, other]
    ahead.put_away(one)
    assert one.closed.wait(10)
    # What comes back clean goes out again, to one at a time; beside one that waits it is ended.
    ahead.give_back(other)
    spare = Started()
    ahead.give_back(spare)
    assert spare.closed.wait(10)
    assert ahead.take() is other
    assert not other.closed.is_set()
    third = ahead.take()
    assert third not in (one, other)
    assert not third.closed.is_set()


def test_what_could_not_be_started_ahead_is_started_when_it_is_needed() -> None:
    failures = [OSError("no memory")]

    def start() -> Started:
        if failures:
            raise failures.pop()
        return Started()

    ahead = StartedAhead(start)
    ahead.begin()
    assert isinstance(ahead.take(), Started)
