"""Groups found among constants, and small tables looked up last: the numbers of the plain plan."""

from __future__ import annotations

import pickle
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import psycopg
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.before_charge import Groups
from sqlrs.catalog import Catalog, ColumnType, Family, Routine
from sqlrs.compiled import CompiledStatement
from sqlrs.engines.base import Opened, Row, Snapshot, one_integer, rows_for_good
from sqlrs.measures import KeyDomain, Measure, Ordinals
from sqlrs.measuring.groups import can_measure_by_group
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.sampling import _Sampled
from sqlrs.planning import lookups_last
from sqlrs.planning.table_statistics import Repetition
from sqlrs.query import Variable
from sqlrs.sensitivity.weighted import counted, needs_sums, sum_reached
from sqlrs.sql.known_groups import as_constants
from tests.support.builders import INTEGER, TEXT

SEED = 4111
TABLES = """
CREATE TABLE land (l_id INTEGER PRIMARY KEY, l_name VARCHAR NOT NULL, l_since DATE);
CREATE TABLE town (t_id INTEGER PRIMARY KEY, t_land INTEGER, t_size INTEGER NOT NULL,
    t_coast BOOLEAN);
CREATE TABLE trip (i_id INTEGER PRIMARY KEY, i_town INTEGER, i_day DATE, i_at TIMESTAMP,
    i_cost DECIMAL(9, 3), i_far DOUBLE PRECISION, i_seats SMALLINT, i_kind VARCHAR);
"""
DAYS = "i_day BETWEEN DATE '2020-01-01' AND DATE '2021-12-31'"
HOME = "trip JOIN town ON i_town = t_id JOIN land ON t_land = l_id"
STATEMENTS = [
    f"SELECT l_name, count(*) FROM {HOME} GROUP BY l_name",
    f"SELECT l_name, sum(i_cost) FROM {HOME} GROUP BY l_name",
    f"SELECT l_since, count(*), avg(i_seats) FROM {HOME} GROUP BY l_since",
    f"SELECT l_name, extract(year FROM i_day), count(*) FROM {HOME} WHERE {DAYS} GROUP BY 1, 2",
    f"SELECT l_name, i_kind, sum(i_cost * t_size) FROM {HOME} GROUP BY 1, 2",
    f"SELECT l_name, t_coast, count(*) FROM {HOME} WHERE t_size > i_seats GROUP BY 1, 2",
    f"SELECT l_name, count(DISTINCT i_town) FROM {HOME} GROUP BY l_name",
    f"SELECT date_trunc('month', i_day), sum(i_seats) FROM trip WHERE {DAYS} GROUP BY 1",
    f"SELECT i_day, count(*) FROM trip WHERE {DAYS} AND i_day < DATE '2020-02-01' GROUP BY 1",
    "SELECT t_coast, i_kind, count(*), sum(i_cost) FROM trip JOIN town ON i_town = t_id "
    "GROUP BY 1, 2",
    "SELECT i_seats, count(*), sum(i_far) FROM trip GROUP BY i_seats",
    "SELECT CASE WHEN i_far > 0.5 THEN 1 ELSE 0 END, count(*) FROM trip GROUP BY 1",
    "SELECT a.i_kind, count(*) FROM trip a JOIN trip b ON a.i_kind = b.i_kind "
    "AND a.i_town = b.i_town AND a.i_id <> b.i_id GROUP BY 1",
]
DOMAINS: Mapping[str, Sequence[int | str]] = {
    "trip.i_kind": ["", "a", "A", "ä", "it's", "a\\b", "x y"],
    "trip.i_seats": [-3, 0, 1, 2, 32767],
    "land.l_since": ["2000-01-01", "9999-12-31", "0001-01-01"],
}
BOUNDS: Mapping[str, Sequence[int | Decimal]] = {
    "trip.i_cost": [-500, 1000],
    "trip.i_seats": [-2, 1000],
    "trip.i_far": [-1, 10, Decimal("0.25")],
    "town.t_size": [0, 9],
}


def rows(draw: random.Random) -> dict[str, list[Row]]:
    """NULL, infinities, NaN and values outside of domains and bounds among few others."""

    def some(*values: object) -> object:
        return draw.choice(values)

    far = ("nan", "inf", "-inf", "-0.0", "0", "0.5", "3.3", None)
    days = ("infinity", "-infinity", "2020-01-01", "2020-01-31", "2021-07-04", "2022-01-01", None)
    return {
        "land": [
            (i, some("", "a", "A", "ö'"), some(None, "2000-01-01", "9999-12-31")) for i in range(4)
        ],
        "town": [
            (i, some(None, 0, 1, 2, 3, 9), some(0, 1, 5, 12), some(None, True, False))
            for i in range(draw.randrange(1, 12))
        ],
        "trip": [
            (
                i,
                some(None, *range(12)),
                some(*days),
                some(None, "2020-01-01 00:00:00", "2020-01-01 00:00:00.000001", "infinity"),
                some(None, "0.001", "-0.5", "-999.999", "999999.999", "12"),
                some(*far),
                some(None, -3, 0, 1, 2, 32767, -32768),
                some(None, "", "a", "A", "ä", "it's", "a\\b", "b", "x y"),
            )
            for i in range(draw.randrange(60))
        ],
    }


class ForGood:
    """A snapshot of rows that nobody changes, and the statements that it ran."""

    def __init__(self, own: Snapshot) -> None:
        self._own = own
        self.learned: dict[str, object] | None = {}
        self.statements: list[exp.Expression] = []

    def rows(self, statement: exp.Expression) -> list[Row]:
        self.statements.append(statement)
        return self._own.rows(statement)

    def scalar(self, statement: exp.Expression) -> int:
        return one_integer(self.rows(statement))

    def scans_files(self, statement: exp.Expression) -> bool:
        return False

    def catalog(self) -> Catalog:
        return self._own.catalog()

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        return self._own.routines(names)

    def interrupt(self) -> None:
        self._own.interrupt()


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
        database = sqlrs.connect(target, public=["land"], domains=DOMAINS, bounds=BOUNDS)
        yield stack.enter_context(database), writer


def fill(writer: object, tables: dict[str, list[Row]]) -> None:
    for name, found in tables.items():
        texts = [exp.Tuple(expressions=[exp.convert(v) for v in row]).sql() for row in found]
        writer.execute(f"DELETE FROM {name}")  # type: ignore[attr-defined]
        if texts:
            writer.execute(f"INSERT INTO {name} VALUES {', '.join(texts)}")  # type: ignore[attr-defined]


def measured(
    database: sqlrs.Database,
    compiled: CompiledStatement,
    snapshot: Snapshot,
    *,
    known: bool,
    totals_first: bool = False,
) -> list[tuple[dict[Ordinals, int], list[object]]]:
    """The totals of every term and every T_E that its bound needs."""
    terms = [(one, asked[0]) for asked, own in compiled.asked.items() for one in own]
    groups = Groups.read(compiled.statement.aggregations, snapshot, database.settings)
    measurements = Measurements(
        Opened(snapshot, database.engine.dialect),
        "auto" if known else "plain",
        domains=groups.domains(compiled.statement.aggregations) if known else None,
        kept=compiled.kept,
    )
    if known:
        measurements.read_ahead((one.signed, one.residuals, own) for one, own in terms)
    found = []
    for one, domains in terms:
        residuals = one.residuals
        kinds = [counted(residuals), *([residuals] if needs_sums(residuals.query) else [])]
        wanted = sum_reached(residuals)
        if totals_first:
            # As a release does that draws one vector: a value may be read on the way.
            totals = dict(measurements.totals(one.signed, residuals, domains))
        values: list[object] = [dict(measurements.values(kind, wanted, None)) for kind in kinds]
        keys = one.signed.keys
        if all(can_measure_by_group(kind, wanted, keys) for kind in kinds):
            # Before the totals, as a release does: they may be read on the way.
            values += [
                {
                    group: dict(own)
                    for group, own in measurements.values_by_group(
                        kind, wanted, keys, domains
                    ).items()
                }
                for kind in kinds
            ]
        if not totals_first:
            totals = dict(measurements.totals(one.signed, residuals, domains))
        found.append((totals, values))
    return found


@pytest.mark.parametrize("sql", STATEMENTS)
def test_known_groups_have_the_numbers_of_the_plain_plan(
    opened: tuple[sqlrs.Database, object],
    sql: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database, writer = opened
    for number, rows_per_group in enumerate((0, 4)):
        # Nothing may be kept of plans for other rows.
        compiled = CompiledStatement.of(sql, database.catalog, database.settings)
        monkeypatch.setattr(lookups_last, "_ROWS_PER_GROUP", rows_per_group)
        fill(writer, rows(random.Random(SEED + number)))
        with database.engine.snapshot() as snapshot:
            plain = measured(database, compiled, snapshot, known=False)
            assert measured(database, compiled, ForGood(snapshot), known=True) == plain
            assert measured(database, compiled, snapshot, known=True) == plain
            good = ForGood(snapshot)
            assert measured(database, compiled, good, known=True, totals_first=True) == plain


def test_the_value_of_a_table_is_read_on_the_way_to_the_totals(
    opened: tuple[sqlrs.Database, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, writer = opened
    monkeypatch.setattr(lookups_last, "_ROWS_PER_GROUP", 0)
    # Town 9 has the most trips and the highest sum, and is in no land; trip 7 has no town.
    places = [1, 1, 2, 9, 9, 9, 2, None, 3]
    fill(
        writer,
        {
            "land": [(1, "a", None)],
            "town": [(1, 1, 0, None), (2, 1, 0, None), (9, None, 0, None)],
            "trip": [(i, town, *[None] * 2, "7.5", *[None] * 3) for i, town in enumerate(places)],
        },
    )
    summed = f"SELECT l_name, sum(greatest(least(i_cost, 9), 0)) FROM {HOME} GROUP BY l_name"
    for sql in (STATEMENTS[0], summed):
        compiled = CompiledStatement.of(sql, database.catalog, database.settings)
        with database.engine.snapshot() as snapshot:
            plain = measured(database, compiled, snapshot, known=False)
            good = ForGood(snapshot)
            # As if every town had ten trips.
            size = {"trip": 1e6, "town": 1e5, "land": 25.0}
            tables = {atom.table for atom in compiled.queries[0].atoms}
            good.learned = {
                "statistics": _Sampled({one.identity: size[one.name] for one in tables})
            }
            assert measured(database, compiled, good, known=True, totals_first=True) == plain
        read = [one for one in good.statements if "largest" in one.sql()]
        assert len(read) == 1
        # Of a sum the count is read once more, and no sum.
        assert not any("results_1" in one.sql() for one in good.statements)


def test_the_largest_part_of_a_group_is_read_beside_its_total(
    opened: tuple[sqlrs.Database, object],
) -> None:
    database, writer = opened
    # Kinds that share towns, some more often than others.
    kinds = [(kind, town) for kind, town in enumerate([1, 1, 1, 2, 2, 3])]
    trips: list[Row] = [
        (i, town, None, None, None, None, None, ("a", "A", "x y", "b", "", None)[place % 6])
        for i, (place, town) in enumerate([*kinds, *kinds[:2], *kinds[1:4], (0, 2), (1, 3)])
    ]
    fill(writer, {"trip": trips})
    # Of the other keys some values have no constants.
    sql = STATEMENTS[-1].replace("GROUP BY", "WHERE a.i_kind IN ('a', 'A', 'x y') GROUP BY")
    compiled = CompiledStatement.of(sql, database.catalog, database.settings)
    with database.engine.snapshot() as snapshot:
        plain = measured(database, compiled, snapshot, known=False)
        good = ForGood(snapshot)
        # Of so many rows no pairs are made.
        trip = compiled.queries[0].atoms[0].table.identity
        often = {(trip, name): Repetition.guessed(1e7) for name in ("i_kind", "i_town")}
        good.learned = {"statistics": _Sampled({trip: 1e7}, often)}
        assert measured(database, compiled, good, known=True) == plain
    assert any("part" in one.sql() and "both" in one.sql() for one in good.statements)


def test_constants_and_lookups_are_used_where_they_can_be(
    opened: tuple[sqlrs.Database, object],
) -> None:
    database, writer = opened
    fill(writer, rows(random.Random(SEED)))
    texts = []
    for sql in STATEMENTS[:4]:
        compiled = CompiledStatement.of(sql, database.catalog, database.settings)
        with database.engine.snapshot() as snapshot:
            good = ForGood(snapshot)
            measured(database, compiled, good, known=True)
            texts += [one.sql() for one in good.statements]
    constants = [text for text in texts if "listed(k0, ordinal)" in text]
    assert constants
    assert not any("in_one_group" in text for text in constants)
    assert any("_per_" in text for text in constants)


MOMENT = ColumnType(Family.TIMESTAMP, "TIMESTAMP")
COMPUTED = ColumnType(Family.OTHER, "computed")
NOON = datetime(2020, 1, 1, 12)
DAY = datetime(2020, 1, 1)


def domain(select: str = "SELECT 1 AS k0") -> KeyDomain:
    return KeyDomain((0,), exp.maybe_parse(select, dialect="duckdb"), "")


@pytest.mark.parametrize(
    ("kind", "values", "works"),
    [
        (TEXT, ["a", "A", ""], True),
        (TEXT, ["a", None], False),
        (TEXT, ["a", "a"], False),
        (TEXT, ["a\\b"], False),
        (TEXT, ["a\x00"], False),
        (TEXT, [f"{n}" for n in range(501)], False),
        (TEXT, [], False),
        (ColumnType(Family.TEXT, "VARCHAR", "NOCASE"), ["a", "A"], False),
        (ColumnType(Family.TEXT, "char(3)"), ["a"], False),
        (INTEGER, [1, -(2**63) + 1], True),
        (INTEGER, [2**64], False),
        (INTEGER, [True], False),
        (ColumnType(Family.FLOAT, "DOUBLE"), [1.0], False),
        (ColumnType(Family.DATE, "DATE"), [date(2020, 1, 1)], True),
        (ColumnType(Family.DATE, "DATE"), [date.max], False),
        (MOMENT, [NOON], True),
        (MOMENT, [datetime.max], False),
        (ColumnType(Family.TIMESTAMP, "TIMESTAMP_NS"), [NOON], False),
        (COMPUTED, [1, 2**24], True),
        (COMPUTED, [2**24 + 1], False),
        (COMPUTED, ["a", "A"], False),
        (COMPUTED, [1.5], False),
        (COMPUTED, [date(2020, 1, 1)], True),
        (COMPUTED, [date(2011, 12, 30), date(2011, 12, 31)], False),
        (COMPUTED, [DAY, DAY + timedelta(2)], True),
        (COMPUTED, [DAY + timedelta(1), DAY], False),
        (COMPUTED, [NOON], False),
        (COMPUTED, [DAY.replace(tzinfo=UTC)], False),
    ],
)
def test_which_values_are_constants(kind: ColumnType, values: list[object], works: bool) -> None:
    found = as_constants([Variable("x", kind)], [domain()], [[(value,) for value in values]])
    assert (found is not None) == works


def test_moments_that_may_be_finer_than_python_has_them_are_no_constants() -> None:
    for select in ("SELECT k0 FROM public_days", "SELECT CAST('2020-01-01' AS TIMESTAMP_NS) AS k0"):
        assert as_constants([Variable("x", COMPUTED)], [domain(select)], [[(DAY,)]]) is None
    assert as_constants([None], [domain()], [[(1,)]]) is None


def test_a_public_table_that_others_write_to_is_read_each_time() -> None:
    writer = duckdb.connect()
    writer.execute("CREATE TABLE land (l_id INTEGER PRIMARY KEY, l_name VARCHAR NOT NULL)")
    writer.execute("CREATE TABLE town (t_id INTEGER PRIMARY KEY, t_land INTEGER NOT NULL)")
    writer.execute("INSERT INTO land VALUES (1, 'a')")
    sql = "SELECT l_name, count(*) FROM town JOIN land ON t_land = l_id GROUP BY 1 ORDER BY 1"
    with sqlrs.connect(writer, public=["land"]) as database:
        assert [row[0] for row in database.query(sql, 1).rows] == ["a"]
        writer.execute("INSERT INTO land VALUES (2, 'b')")
        assert [row[0] for row in database.query(sql, 2).rows] == ["a", "b"]


def test_files_are_looked_at_each_time(tmp_path: object) -> None:
    file = f"{tmp_path}/land.parquet"
    duckdb.execute(f"COPY (SELECT 1 AS l_id, 'a' AS l_name) TO '{file}'")
    with sqlrs.connect(tables={"land": file}) as database, database.engine.snapshot() as snapshot:
        assert rows_for_good(snapshot) is not None
        reading = exp.select("l_name").from_("land")
        assert rows_for_good(snapshot, reading) is None


def test_the_hash_of_a_measure_stays_in_its_process() -> None:
    for one in (Measure(()), domain()):
        assert hash(one) == one._hash
        assert "_hash" not in vars(pickle.loads(pickle.dumps(one)))
