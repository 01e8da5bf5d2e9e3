"""Data frames as tables: pandas, polars, Arrow, lists of dictionaries, with special values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.catalog import Family
from sqlrs.engines.given_views import shows_rows_of_one_source
from sqlrs.errors import EngineFailed, UsageError

SECRET = "SECRET-7731"
ROWS = {"patient": [1, 2, 2, 3], "age": [30, 41, 41, 7], "ward": ["a", "b", "b", None]}
JOIN = "SELECT count(*) FROM visit a JOIN visit b ON a.patient = b.patient WHERE a.age > 20"


def frames() -> dict[str, Any]:
    table = pa.table(ROWS)
    return {
        "pandas": pd.DataFrame(ROWS),
        "pandas object": pd.DataFrame(ROWS).astype({"ward": object}),
        "polars": pl.DataFrame(ROWS),
        "polars lazy": pl.LazyFrame(ROWS),
        "arrow": table,
        "arrow batch": table.to_batches()[0],
        "arrow dataset": pyarrow.dataset.dataset(table),
    }


def read(database: sqlrs.Database, query: exp.Select | None = None) -> list[tuple[object, ...]]:
    with database.engine.snapshot() as snapshot:
        return sorted(snapshot.rows(query or exp.select("*").from_("visit")), key=repr)


def kinds(database: sqlrs.Database) -> dict[str, str]:
    (table,) = database.catalog.tables
    return {column.name: column.type.name for column in table.columns}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", frames())
def test_every_frame_is_the_same_table(kind: str) -> None:
    with sqlrs.connect(tables={"visit": frames()[kind]}) as database:
        assert kinds(database) == {"patient": "BIGINT", "age": "BIGINT", "ward": "VARCHAR"}
        assert database.catalog.tables[0].private
        assert read(database) == sorted(zip(*ROWS.values(), strict=True), key=repr)
        assert database.count(JOIN, epsilon=1000).value == 5


def test_a_frame_that_changes_later_is_the_one_that_was_given() -> None:
    frame = pd.DataFrame(ROWS)
    with sqlrs.connect(tables={"visit": frame}) as database:
        frame["age"] = 99
        frame.loc[0, "patient"] = 7
        assert read(database) == sorted(zip(*ROWS.values(), strict=True), key=repr)


def test_missing_is_null_and_special_values_stay() -> None:
    nan, inf = float("nan"), float("inf")
    text = exp.select("CAST(COLUMNS(*) AS VARCHAR)").from_("visit")
    with sqlrs.connect(tables={"visit": pd.DataFrame({"x": [1.5, nan, inf]})}) as database:
        assert read(database, text) == [("1.5",), ("inf",), (None,)]
    for frame in (pl.DataFrame({"x": [1.5, nan, None]}), pa.table({"x": [1.5, nan, None]})):
        with sqlrs.connect(tables={"visit": frame}) as database:
            assert read(database, text) == [("1.5",), ("nan",), (None,)]
            # NaN is the greatest value to DuckDB, also in a copy of Arrow's.
            assert database.count("SELECT count(*) FROM visit WHERE x > 100", 1000).value == 1


def test_types_of_frames() -> None:
    moments = pd.to_datetime(["2024-02-29 12:00", None])
    frame = pd.DataFrame(
        {
            "category": pd.Categorical(["x", SECRET]),
            "code": pd.Categorical([7, 8]),
            "share": pd.Categorical([0.5, 1.5]),
            "moment": moments.astype("datetime64[ns]"),
            "zoned": moments.tz_localize("Europe/Vienna"),
            "truth": [True, False],
            "maybe": pd.array([1, None], dtype="Int64"),
            "small": pd.array([1, 2], dtype="uint8"),
        }
    )
    with sqlrs.connect(tables={"visit": frame}) as database:
        assert kinds(database) == {
            "category": "VARCHAR",
            "code": "BIGINT",
            "share": "DOUBLE",
            "moment": "TIMESTAMP",
            "zoned": "TIMESTAMP WITH TIME ZONE",
            "truth": "BOOLEAN",
            "maybe": "BIGINT",
            "small": "UTINYINT",
        }
        # What is in the rows is no part of the schema: an enumeration would list its labels.
        assert SECRET not in repr(database.catalog)
        zoned = exp.select("epoch(zoned)").from_("visit").where("zoned IS NOT NULL")
        assert read(database, zoned) == [(dt.datetime(2024, 2, 29, 11, tzinfo=dt.UTC).timestamp(),)]
    arrow = pa.table({"word": pa.array(["x", "y"]).dictionary_encode()})
    for given in (arrow, pl.DataFrame({"word": ["x", "y"]}, schema={"word": pl.Enum(["x", "y"])})):
        with sqlrs.connect(tables={"visit": given}) as database:
            assert kinds(database) == {"word": "VARCHAR"}


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ([1, SECRET], None),
        ([dt.date(2024, 1, 2), None], None),
        ([1, 2], None),
        ([b"x"], None),
        ([[1], [2]], None),
        ([1, SECRET], {"x": "VARCHAR"}),
        ([SECRET], {"x": "DATE"}),
        ([1.5], {"x": "BIGINT"}),
        ([Decimal("1.555")], {"x": "DECIMAL(5, 2)"}),
    ],
)
def test_objects_of_other_kinds_are_refused(values: list[Any], types: Any) -> None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    with pytest.raises(UsageError) as caught:
        sqlrs.connect(tables={"visit": frame}, types=types and {"visit": types})
    assert SECRET not in caught.value.describe()


def test_declared_types_of_objects() -> None:
    day = dt.date(2024, 1, 2)
    frame = pd.DataFrame({"day": [day, None], "price": [Decimal("1.50"), None]}, dtype=object)
    types = {"visit": "day DATE, price DECIMAL(6, 2)"}
    with sqlrs.connect(tables={"visit": frame}, types=types) as database:
        assert kinds(database) == {"day": "DATE", "price": "DECIMAL(6,2)"}
        assert read(database) == [(None, None), (day, Decimal("1.50"))]


def test_declared_types_round_nothing() -> None:
    """pandas makes floating point of integers with one missing value among them."""
    frame = pd.DataFrame({"age": [30.0, float("nan")]})
    with sqlrs.connect(tables={"visit": frame}, types={"visit": "age BIGINT"}) as database:
        assert database.catalog.tables[0].columns[0].type.family is Family.INTEGER
        assert read(database) == [(30,), (None,)]
    for value, kind in ((3.5, "BIGINT"), (1e300, "BIGINT"), (300.0, "TINYINT")):
        wrong = pd.DataFrame({"age": [value]})
        with pytest.raises(UsageError, match="does not fit") as caught:
            sqlrs.connect(tables={"visit": wrong}, types={"visit": {"age": kind}})
        assert str(value) not in caught.value.describe()
    nanoseconds = pa.table({"at": pa.array([1_000, 1], type=pa.timestamp("ns"))})
    with pytest.raises(UsageError, match="does not fit"):
        sqlrs.connect(tables={"visit": nanoseconds})


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]]),
        pd.DataFrame([[1, 2]], columns=["a", "A"]),
        pa.table([[1], [2]], names=["a", "a"]),
        pd.DataFrame({"p": pd.period_range("2024-01", periods=2, freq="M")}),
        pa.table({"d": pa.array([1], type=pa.decimal256(50, 2))}),
    ],
    ids=["numbers", "case", "twice", "period", "decimal"],
)
def test_frames_that_are_no_tables_are_refused(frame: Any) -> None:
    with pytest.raises(UsageError, match="visit") as caught:
        sqlrs.connect(tables={"visit": frame})
    assert caught.value.__context__ is None


def test_lists_of_dictionaries_need_types() -> None:
    records = [
        {"patient": 1, "day": dt.date(2024, 1, 2), "note": ""},
        {"patient": 2, "day": None, "note": 'a "b"\nc'},
        {"patient": 3},
    ]
    with pytest.raises(UsageError, match="not declared") as caught:
        sqlrs.connect(tables={"visit": records})
    types = "patient BIGINT, day DATE, note VARCHAR"
    assert caught.value.hint == f'types={{"visit": "{types}"}}'
    with sqlrs.connect(tables={"visit": records}, types={"visit": types}) as database:
        assert read(database) == [
            (1, dt.date(2024, 1, 2), ""),
            (2, None, 'a "b"\nc'),
            (3, None, None),
        ]
    for wrong in ([{"patient": 1.5}], [{"patient": SECRET}], [{"patient": [1]}], [{"more": 1}]):
        with pytest.raises(UsageError) as caught:
            sqlrs.connect(tables={"visit": wrong}, types={"visit": "patient BIGINT"})
        assert SECRET not in caught.value.describe()
    for nothing in ([], [1], [{1: 2}]):
        with pytest.raises(UsageError):
            sqlrs.connect(tables={"visit": nothing})


def test_frames_are_edge_lists_too() -> None:
    edges = {"u": [1, 2, 1, 1], "v": [2, 3, 3, 2], "weight": [0.5, 1, 2, 3]}
    for frame in (pd.DataFrame(edges), pl.DataFrame(edges)):
        with sqlrs.connect(tables={"edge": frame}, graphs={"edge": "undirected"}) as database:
            assert database.catalog.tables[0].rows_per_unit == 2
            assert database.count("SELECT count(*) FROM edge", epsilon=1000).value == 6
    missing = pd.DataFrame({"u": pd.array([1, None], dtype="Int64"), "v": [1, 2]})
    with pytest.raises(UsageError, match="does not fit"):
        sqlrs.connect(tables={"edge": missing}, graphs={"edge": "directed"})


def test_a_frame_beside_files_and_locked_down(tmp_path: Path) -> None:
    (tmp_path / "ward.csv").write_text("ward,size\na,3\nb,4\n")
    tables = {"visit": pd.DataFrame(ROWS), "ward": tmp_path / "ward.csv"}
    with sqlrs.connect(tables=tables, public="ward") as database:
        joined = "SELECT count(*) FROM visit JOIN ward ON visit.ward = ward.ward"
        assert database.count(joined, epsilon=1000).value == 3
        with database.engine.snapshot() as snapshot, pytest.raises(EngineFailed):
            snapshot.rows(exp.select("*").from_("sqlrs_given_frame"))


def test_registered_frames_and_views_over_files(tmp_path: Path) -> None:
    path = tmp_path / "ward.parquet"
    with duckdb.connect() as connection:
        connection.sql("SELECT 'b' AS ward, 'nan'::DOUBLE AS size").write_parquet(str(path))
        connection.register("visit", pd.DataFrame(ROWS))
        connection.register("other", pa.table(ROWS))
        connection.execute(f"CREATE VIEW ward AS SELECT * FROM '{path}'")
        connection.execute(f"CREATE VIEW again AS SELECT * FROM read_parquet('{path}')")
        connection.execute("CREATE TABLE stay AS SELECT 1 AS id")
        connection.execute("CREATE VIEW stays AS SELECT id FROM stay")
        with sqlrs.connect(connection) as database:
            names = {table.name for table in database.catalog.tables}
            assert names == {"visit", "other", "ward", "again", "stay"}
            assert [view.name for view in database.catalog.views] == ["stays"]
            asked = "SELECT count(*) FROM visit JOIN ward ON visit.ward = ward.ward"
            assert database.count(asked + " WHERE size > 1", epsilon=1000).value == 2
            assert database.count("SELECT count(*) FROM stays", epsilon=1000).value == 1
            path.unlink()
            assert database.count(asked + " WHERE size > 2", epsilon=1000).value == 2
        assert connection.execute("SELECT count(*) FROM visit").fetchall() == [(4,)]
        attached = "SELECT count(*) FROM duckdb_databases() WHERE database_name LIKE 'sqlrs%'"
        assert connection.execute(attached).fetchall() == [(0,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM 'x.parquet'",
        "SELECT * FROM 'x.parquet' WHERE a > 1",
        "SELECT DISTINCT * FROM 'x.parquet'",
        "SELECT * FROM 'x.parquet' LIMIT 1",
        "SELECT * FROM 'x.parquet', 'y.parquet'",
        "SELECT * FROM visit",
        "SELECT * FROM range(5)",
        "SELECT * FROM 'x.parquet' UNION ALL SELECT * FROM 'x.parquet'",
        "SELECT *, 1 AS b FROM 'x.parquet'",
        "SELECT * FROM 'x.parquet' ORDER BY a",
        "SELECT * EXCLUDE (a) FROM 'x.parquet'",
        "SELECT * REPLACE (1 AS a) FROM 'x.parquet'",
        "SELECT * FROM 'x.parquet' USING SAMPLE 5",
        "SELECT * FROM 'x.parquet' TABLESAMPLE 5%",
    ],
)
def test_other_views_show_no_rows_of_a_file(query: str) -> None:
    assert not shows_rows_of_one_source(f"CREATE VIEW v AS {query}")
