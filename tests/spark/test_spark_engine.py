"""The Spark engine alone: files held still, types, settings, stops, errors that tell nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from pyspark.sql.functions import udf
from sqlglot import exp

import sqlrs
from sqlrs.catalog import Family
from sqlrs.cli.progress import share_in_words
from sqlrs.compiler.functions import FUNCTIONS
from sqlrs.dialects import dialect_named
from sqlrs.engines import spark_session
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.engines.spark_catalog import spark_type
from sqlrs.engines.watch import Stop, watched
from sqlrs.errors import (
    EngineFailed,
    Interrupted,
    QueryRefused,
    SqlrsError,
    StatementFailed,
    UsageError,
)
from sqlrs.ledger import MemoryLedger
from tests.support.spark import load

_EDGES = "# ends\n1\t2\n2 3\n\n3\t1\n3\t1\n3\t4\n"


def _select(text: str) -> exp.Expression:
    tree = sqlglot.parse_one(text, dialect="spark")
    assert isinstance(tree, exp.Expression)
    return tree


@pytest.fixture
def edges(spark: Any, tmp_path: Path) -> Iterator[tuple[Engine, Path]]:
    load(spark, (), {})
    file = tmp_path / "edges.txt"
    file.write_text(_EDGES, encoding="utf-8")
    engine = open_engine(spark, tables={"edge": file})
    yield engine, file
    engine.close()


_COUNT = "SELECT count(*) FROM edge"


def test_an_edge_list_has_no_repetition_and_is_a_key(edges: tuple[Engine, Path]) -> None:
    engine, _ = edges
    (table,) = engine.catalog().tables
    assert table.keys == {frozenset({"src", "dst"})}
    with engine.snapshot() as snapshot:
        assert snapshot.scalar(_select(_COUNT)) == 4


@pytest.mark.parametrize("change", ["overwritten", "gone"])
def test_a_file_that_changes_ends_the_release(edges: tuple[Engine, Path], change: str) -> None:
    engine, file = edges
    with pytest.raises(EngineFailed) as failed, engine.snapshot() as snapshot:
        snapshot.scalar(_select(_COUNT))
        if change == "gone":
            file.unlink()
        else:
            file.write_text("7\t8\n", encoding="utf-8")
    assert failed.value.code == "file_changed"
    assert str(file) not in str(failed.value)


def test_a_release_reads_the_files_that_are_there_when_it_begins(
    spark: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "visits"
    spark.range(3).write.parquet(str(folder))
    engine = open_engine(spark, tables={"visit": folder})
    count = _select("SELECT count(*) FROM visit")
    with engine.snapshot() as snapshot:
        assert snapshot.scalar(count) == 3
        spark.range(5).write.mode("append").parquet(str(folder))
        assert snapshot.scalar(count) == 3
    with engine.snapshot() as snapshot:
        assert snapshot.scalar(count) == 8
    # One table is a pattern of files, and one a CSV file, whose types are the owner's words.
    csv = tmp_path / "a.csv"
    csv.write_text("x,day\n1,2024-02-29\n,2024-03-01\n", encoding="utf-8")
    engine = open_engine(
        spark,
        tables={"visit": f"{folder}/*.parquet", "c": csv},
        types={"c": "x BIGINT, day DATE"},
    )
    with engine.snapshot() as snapshot:
        assert snapshot.scalar(count) == 8
        assert snapshot.rows(_select("SELECT count(*), count(x), max(year(day)) FROM c")) == [
            (2, 1, 2024)
        ]
    csv.write_text("x,day\n1.5,2024-02-29\n", encoding="utf-8")
    with pytest.raises(EngineFailed) as failed, engine.snapshot() as snapshot:
        snapshot.rows(_select("SELECT count(x) FROM c"))
    assert "1.5" not in str(failed.value)
    with pytest.raises(UsageError, match="no types"):
        open_engine(spark, tables={"c": csv})


def test_tables_that_cannot_be_held_still_are_left_out(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    load(spark, (), {})
    spark.sql("SELECT id, rand() AS r FROM range(3)").createOrReplaceTempView("chance")
    spark.range(9).limit(3).createOrReplaceTempView("some")
    spark.range(9).where("id > 2").createOrReplaceTempView("still")
    engine = open_engine(spark)
    with engine.snapshot() as snapshot:
        assert snapshot.scalar(_select("SELECT count(*) FROM still")) == 6
    assert [table.name for table in engine.catalog().tables] == ["still"]
    for name in ("chance", "some"):
        assert caplog.text.count(f"table {name} cannot be held still") == 1
        with pytest.raises(EngineFailed), engine.snapshot() as snapshot:
            snapshot.scalar(_select(f"SELECT count(*) FROM {name}"))


def test_views_whose_rows_move_or_are_not_their_own_are_left_out(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load(spark, (), {})
    for name in ("days", "more"):
        spark.range(9).write.parquet(str(tmp_path / name))
    days, more = (spark.read.parquet(str(tmp_path / name)) for name in ("days", "more"))
    values = spark.createDataFrame([(1,), (2,)], "id BIGINT")
    shown = {
        "a_days": days,
        "b_part": days.where("id > 3"),
        "c_values": values,
        "d_some_values": values.where("id > 1"),
        "e_more": more.selectExpr("id + 1 AS id").union(spark.range(2).toDF("id")),
        "f_twice": more.union(more.where("id > 5")),
        "g_now": more.where("id < unix_timestamp() - 100"),
        "h_today": more.selectExpr("id", "current_date() AS day"),
        "i_foreign": more.select(udf(lambda value: value, "bigint")("id").alias("id")),
    }
    for name, frame in shown.items():
        frame.createOrReplaceTempView(name)
    engine = open_engine(spark)
    assert [one.name for one in engine.catalog().tables] == ["a_days", "c_values", "e_more"]
    for said in (
        "view b_part shows rows of table a_days",
        "view d_some_values shows rows of table c_values",
        "table f_twice shows the same rows several times",
        "g_now cannot be held still: what it asks for changes with time",
        "h_today cannot be held still: what it asks for changes with time",
        "i_foreign cannot be held still: it calls a function of its own",
    ):
        assert caplog.text.count(said) == 1, said
    with engine.snapshot() as snapshot:
        assert snapshot.scalar(_select("SELECT count(*) FROM e_more")) == 11
    # A file that is given is one of these tables too.
    engine = open_engine(spark, tables={"given": tmp_path / "days"})
    assert [one.name for one in engine.catalog().tables] == ["given", "c_values", "e_more"]
    for name in shown:
        spark.catalog.dropTempView(name)


def test_types_are_read_strictly() -> None:
    families = {
        "int": Family.INTEGER,
        "decimal(9,2)": Family.DECIMAL,
        "float": Family.FLOAT,
        "string": Family.TEXT,
        "varchar(3)": Family.TEXT,
        "char(3)": Family.OPAQUE,
        "timestamp": Family.TIMESTAMP_TZ,
        "timestamp_ntz": Family.TIMESTAMP,
        "string collate UTF8_LCASE": Family.OTHER,
        "map<int,int>": Family.OPAQUE,
        "interval day to second": Family.OPAQUE,
        "something new": Family.OPAQUE,
    }
    assert {name: spark_type(name).family for name in families} == families
    assert spark_type("string collate UTF8_LCASE").collation == "UTF8_LCASE"


def test_catalog_tables_and_views(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    load(spark, (), {})
    spark.sql("CREATE DATABASE clinic")
    spark.sql(
        "CREATE TABLE clinic.stay (a CHAR(3), b STRING COLLATE UTF8_LCASE, c TIMESTAMP, "
        "d TIMESTAMP_NTZ, n BIGINT) USING parquet"
    )
    spark.sql(
        "INSERT INTO clinic.stay VALUES ('x', 'Q', now(), NULL, 1), ('y', 'q', now(), NULL, 5)"
    )
    spark.sql("USE clinic")
    spark.sql("CREATE VIEW large (number) AS SELECT n FROM stay WHERE n > 2")
    try:
        db = sqlrs.connect(spark)
        (table,) = [one for one in db.catalog.tables if one.name == "stay"]
        families = {one.name: one.type.family for one in table.columns}
        assert families["a"] is Family.OPAQUE and families["b"] is Family.OTHER
        assert families["c"] is Family.TIMESTAMP_TZ and families["d"] is Family.TIMESTAMP
        measured = db.sensitivity("SELECT count(*) FROM large WHERE number < 100", beta=0.1)
        assert measured.count == 1
        same = db.sensitivity("SELECT count(*) FROM stay x JOIN stay y ON x.b = y.b", beta=0.1)
        assert same.count == 4
        with pytest.raises(QueryRefused):
            db.count("SELECT count(*) FROM stay WHERE a = 'x'", epsilon=1)
        with pytest.raises(UsageError, match="is not a key"):
            sqlrs.connect(spark, keys={"stay": ["b"]})
        # From elsewhere its tables need their database.
        spark.sql("USE default")
        spark.sql("CREATE VIEW clinic.whole AS SELECT n FROM clinic.stay WHERE n > 2")
        spark.sql("CREATE TABLE stay (n BIGINT) USING parquet")
        spark.sql("CREATE VIEW clinic.bare AS SELECT n FROM stay")
        db = sqlrs.connect(spark)
        assert {view.name for view in db.catalog.views} == {"large", "whole"}
        assert "view clinic.bare was made in another database" in caplog.text
        assert db.sensitivity("SELECT count(*) FROM clinic.whole", beta=0.1).count == 1
    finally:
        spark.sql("USE default")


def test_a_table_made_anew_is_not_the_one_that_was_opened(spark: Any, tmp_path: Path) -> None:
    """Found out before the charge; what was declared of the one is not true of the other."""
    load(spark, (), {})
    asked = "SELECT count(*) FROM stay WHERE n > 0"

    def make(columns: str, place: str) -> None:
        spark.sql("DROP TABLE IF EXISTS stay")
        spark.sql(f"CREATE TABLE stay ({columns}) USING parquet LOCATION '{tmp_path / place}'")

    make("n BIGINT", "first")
    ledger = MemoryLedger()
    plain = sqlrs.connect(spark, ledger=ledger)
    declared = sqlrs.connect(spark, ledger=ledger, keys={"stay": ["n"]})
    make("n BIGINT", "second")
    plain.count(asked, epsilon=0.25)

    def is_refused(db: sqlrs.Database) -> bool:
        with pytest.raises(UsageError, match="stay has changed") as refused:
            db.count(asked, epsilon=0.5)
        return refused.value.code == "schema_changed"

    assert is_refused(declared)
    make("n STRING", "third")
    assert is_refused(plain)
    assert ledger.spent() == Decimal("0.25")


@pytest.mark.slow
def test_a_view_of_other_settings_is_left_out(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    load(spark, (), {})
    spark.sql("CREATE DATABASE clinic")
    spark.sql("CREATE TABLE clinic.stay (n STRING) USING parquet")
    spark.sql("USE clinic")
    for name, setting, value in (
        ("lenient", "spark.sql.ansi.enabled", "false"),
        ("older", "spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("berlin", "spark.sql.session.timeZone", "Europe/Berlin"),
        ("alike", "spark.sql.session.timeZone", "UTC"),
    ):
        spark.conf.set(setting, value)
        spark.sql(f"CREATE VIEW {name} AS SELECT CAST(n AS INT) AS n FROM stay")
        spark.conf.unset(setting)
    spark.sql("USE default")
    engine = open_engine(spark)
    assert [view.name for view in engine.catalog().views] == ["alike"]
    engine.catalog()
    assert caplog.text.count("view clinic.lenient was made under other settings") == 1


@pytest.mark.slow
def test_what_the_owner_cached_is_not_read(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows of a cache may be older than the files that are compared."""
    load(spark, (), {})
    spark.range(3).write.parquet(str(tmp_path / "visit"))
    frame = spark.read.parquet(str(tmp_path / "visit"))
    # Of one place there is one table: each has an engine of its own.
    engines = {"visit": open_engine(spark, tables={"visit": tmp_path / "visit"})}
    frame.createOrReplaceTempView("seen")
    engines["seen"] = open_engine(spark)
    for name, engine in engines.items():
        assert [one.name for one in engine.catalog().tables] == [name]
    frame.cache()
    try:
        assert [one.name for one in open_engine(spark).catalog().tables] == []
        assert "seen cannot be held still: it is cached in Spark" in caplog.text
        for name, engine in engines.items():
            with pytest.raises(SqlrsError) as failed, engine.snapshot() as snapshot:
                snapshot.scalar(_select(f"SELECT count(*) FROM {name}"))
            assert "cached" in str(failed.value)
    finally:
        frame.unpersist()


def test_nothing_wraps_round_or_vanishes(spark: Any) -> None:
    load(spark, (), {})
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    try:
        spark.range(2).selectExpr("9223372036854775807 AS x").createOrReplaceTempView("big")
        assert spark.sql("SELECT sum(x) FROM big").collect()[0][0] < 0, "the control wraps round"
        engine = open_engine(spark)
        with engine.snapshot() as snapshot:
            with pytest.raises(StatementFailed):
                snapshot.scalar(_select("SELECT max(x + 1) FROM big"))
            # A sum that is planned here is wide enough.
            planned = exp.select(exp.Sum(this=exp.cast(exp.column("x"), "bigint"))).from_("big")
            assert snapshot.scalar(planned) == 2 * (2**63 - 1)
            assert snapshot.rows(_select("SELECT '${x}', 'a\\\\b'")) == [("${x}", "a\\b")]
        # Somebody who reaches into our own session is noticed.
        with pytest.raises(EngineFailed), engine.snapshot() as snapshot:
            engine.own.session.conf.set("spark.sql.ansi.enabled", "false")  # type: ignore[attr-defined]
        engine.close()
    finally:
        for name in ("ansi.enabled", "files.ignoreMissingFiles", "legacy.timeParserPolicy"):
            spark.conf.unset(f"spark.sql.{name}")


def test_no_value_of_the_data_is_told(
    spark: Any, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    load(spark, (), {})
    spark.sql("SELECT 'secret77' AS x UNION ALL SELECT '5'").createOrReplaceTempView("held")
    db = sqlrs.connect(spark)
    with pytest.raises(sqlrs.errors.SqlrsError) as failed:
        db.count("SELECT count(*) FROM held WHERE CAST(x AS INT) > 2", epsilon=1)
    shown = "".join(capfd.readouterr()) + caplog.text + repr(failed.value) + str(failed.value)
    assert "secret77" not in shown
    assert failed.value.__context__ is None and failed.value.__cause__ is None


# Hours in all. A task looks whether it was cancelled at each row of the first table: in seconds.
_ENDLESS = "SELECT count(*) FROM still a, still b, still c, still d WHERE a.id + b.id < c.id * d.id"
_ROWS = 400


@pytest.mark.slow
def test_statements_are_stopped(spark: Any) -> None:
    load(spark, (), {})
    spark.range(_ROWS).createOrReplaceTempView("still")
    engine = open_engine(spark, timeout=2.0)
    with pytest.raises(EngineFailed) as failed, engine.snapshot() as snapshot:
        snapshot.scalar(_select(_ENDLESS))
    assert failed.value.code == "timeout"
    engine = open_engine(spark)
    told: list[str] = []

    def stop_when_it_runs() -> None:
        until = time.monotonic() + 60
        while not told and time.monotonic() < until:
            told.extend(filter(None, [share_in_words(engine)]))
        engine.interrupt()

    # The second one is stopped before its first job begins, while Spark is planning.
    for delay, stop in ((0.0, stop_when_it_runs), (0.05, engine.interrupt)):
        with pytest.raises(Interrupted), engine.snapshot() as snapshot:
            timer = threading.Timer(delay, stop)
            timer.start()
            snapshot.scalar(_select(_ENDLESS))
        timer.join()
    # On a busy machine it may be caught between two stages, when all known tasks have ended.
    assert len(told) == 1 and told[0].endswith(" % of its tasks") and share_in_words(engine) == ""
    # No job is left behind, and the next snapshot works as soon as the tasks have noticed.
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    with engine.snapshot() as snapshot:
        assert snapshot.scalar(_select("SELECT count(*) FROM still")) == _ROWS


def test_nobody_waits_for_what_does_not_end() -> None:
    """A call that takes no notice of being stopped is left to itself."""
    ended, asked = threading.Event(), threading.Event()
    outcome = watched(ended.wait, asked.set, timeout=0.01, patience=0.2)
    assert outcome.stopped is Stop.TIMEOUT and asked.is_set() and not ended.is_set()
    ended.set()


def test_what_spark_cannot_read_is_refused_before_the_charge(spark: Any) -> None:
    load(spark, (), {})
    spark.sql("SELECT 1 AS x, DATE '2024-01-01' AS d, 'a' AS t").createOrReplaceTempView("held")
    db = sqlrs.connect(spark)
    for condition in (
        "d > DATE '2024-02-31'",
        "abs(d - DATE '2024-01-01') < 3",
        "t SIMILAR TO 'a'",
        "d < 'today'",
        "x = CAST('2' AS VARCHAR(1))",
        "x > now()",
    ):
        with pytest.raises(QueryRefused):
            db.count(f"SELECT count(*) FROM held WHERE {condition}", epsilon=1)
    assert db.count('SELECT count(*) FROM held WHERE t = "a"', epsilon=1).value is not None


_PARTS = ["year", "month", "day", "quarter", "dayofweek", "dayofyear", "hour", "minute"]
_OF_TEXTS = [
    "lower",
    "upper",
    "lcase",
    "ucase",
    "length",
    "char_length",
    "reverse",
    "ascii",
    "trim",
    "ltrim",
    "rtrim",
]
_ARGUMENTS = {
    "date_trunc": ["'MONTH'", "DATE '2024-02-29'"],
    "make_date": ["2024", "2", "29"],
    "datediff": ["DATE '2024-02-29'", "DATE '2023-12-31'"],
    "if": ["1 < 2", "3", "4"],
    "split_part": ["'a-b'", "'-'", "2"],
    "replace": ["'abc'", "'b'", "'xy'"],
    **{name: ["'abcd'", "2", "2"] for name in ("substring", "substr")},
    **{name: ["'abcd'", "2"] for name in ("left", "right")},
    **{name: ["'abcb'", "'b'"] for name in ("startswith", "endswith", "contains", "instr")},
    **{name: ["TIMESTAMP '2024-02-29 13:14:15'"] for name in _PARTS},
    **{name: ["' aBc '"] for name in _OF_TEXTS},
    "concat": ["'a'", "NULL", "'b'"],
}  # fmt: skip


def test_functions_mean_what_they_are_written_as(spark: Any) -> None:
    """What the tree makes of a call gives the value of the call as written."""
    calls = []
    for name, (least, _) in FUNCTIONS["spark"].items():
        given = _ARGUMENTS.get(name) or ["0.5", "3", "2"][: max(least, 1) if name != "pi" else 0]
        calls.append(f"{name}({', '.join(given)})")
    written = spark.sql("SELECT " + ", ".join(calls)).collect()[0]
    dialect = dialect_named("spark")
    trees = [dialect.as_read(sqlglot.parse_one(call, dialect="spark")) for call in calls]
    remade = spark.sql("SELECT " + ", ".join(dialect.written(tree) for tree in trees)).collect()[0]
    assert dict(zip(calls, written, strict=True)) == dict(zip(calls, remade, strict=True))
    known = {row[0].lower() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert {name for name in FUNCTIONS["spark"] if name not in known} <= {"if", "coalesce"}


def test_a_call_that_is_broken_off_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    spark_session.hush()
    for path, told in (("py4j/java_gateway.py", False), ("elsewhere/program.py", True)):
        made = logging.LogRecord("root", logging.ERROR, path, 1, "broken off", None, None)
        logging.getLogger().handle(made)
        assert bool(caplog.records) is told
