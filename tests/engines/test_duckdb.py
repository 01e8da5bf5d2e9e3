"""The DuckDB engine: what its catalog says, snapshots, limits, errors and the lock-down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from sqlrs.catalog import Catalog, Family, Table
from sqlrs.compiler.compile import compile_query
from sqlrs.engines.base import Engine
from sqlrs.engines.duckdb import DuckDBEngine, _session_of, open_duckdb
from sqlrs.engines.duckdb_catalog import read_catalog
from sqlrs.engines.open import open_engine
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.query import Query
from tests.support.examples import examples

SECRET = "SECRET-7731"


def statement(text: str) -> exp.Expression:
    return parse_one(text, dialect="duckdb")  # type: ignore[return-value]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def found(catalog: Catalog, label: str) -> Table:
    return next(table for table in catalog.tables if table.label == label)


def read(connection: duckdb.DuckDBPyConnection) -> Catalog:
    with closing(open_engine(connection)) as engine:
        return engine.catalog()


def test_tables_of_all_schemas_and_only_tables_of_users(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute('CREATE TABLE "Odd Name" ("select" INT); CREATE SCHEMA s')
    connection.execute("CREATE TABLE s.t (a INT); CREATE TEMP TABLE hidden (a INT)")
    catalog = read(connection)
    assert [table.label for table in catalog.tables] == ["main.Odd Name", "s.t"]
    assert all(table.private for table in catalog.tables)
    assert catalog.search_path == ("main",)


@pytest.mark.parametrize(
    ("declared", "family"),
    [
        ("TINYINT", Family.INTEGER), ("UBIGINT", Family.INTEGER), ("HUGEINT", Family.INTEGER),
        ("DECIMAL(10,3)", Family.DECIMAL), ("REAL", Family.FLOAT), ("DOUBLE", Family.FLOAT),
        ("CHAR(3)", Family.TEXT), ("TEXT", Family.TEXT), ("DATE", Family.DATE),
        ("TIMESTAMP", Family.TIMESTAMP), ("TIMESTAMP_S", Family.TIMESTAMP),
        ("TIMESTAMPTZ", Family.TIMESTAMP_TZ), ("BOOLEAN", Family.BOOLEAN),
        ("UHUGEINT", Family.OTHER), ("TIMESTAMP_NS", Family.OTHER), ("TIME", Family.OTHER),
        ("INTERVAL", Family.OTHER), ("UUID", Family.OTHER), ("JSON", Family.OTHER),
        ("BLOB", Family.OTHER), ("INT[]", Family.OTHER), ("STRUCT(x INT)", Family.OTHER),
        ("ENUM('a','b')", Family.OTHER), ("BIT", Family.OTHER),
    ],
)  # fmt: skip
def test_types(connection: duckdb.DuckDBPyConnection, declared: str, family: Family) -> None:
    connection.execute(f"CREATE TABLE t (x {declared})")
    assert found(read(connection), "main.t").columns[0].type.family is family


def test_types_of_one_family_compare_by_value(connection: duckdb.DuckDBPyConnection) -> None:
    """The families' promise, put to the database: values near the edges stay apart."""
    pairs = [
        ("UBIGINT", "18446744073709551615", "BIGINT", "-1"),
        ("HUGEINT", "9007199254740993", "BIGINT", "9007199254740992"),
        ("TIMESTAMP_S", "2024-01-01 00:00:00", "TIMESTAMP", "2024-01-01 00:00:00.000001"),
        ("DECIMAL(20,0)", "9007199254740993", "DECIMAL(30,2)", "9007199254740992"),
    ]
    for one, value, other, near in pairs:
        connection.execute(f"CREATE OR REPLACE TABLE t (x {one}, y {other})")
        connection.execute("INSERT INTO t VALUES (?, ?)", [value, near])
        left, right = (c.type for c in found(read(connection), "main.t").columns)
        assert left.joins_with(right)
        assert connection.execute("SELECT x = y FROM t").fetchone() == (False,)


def test_a_unique_constraint_is_a_key_only_without_nulls(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute(
        """
        CREATE TABLE t (
          id INT PRIMARY KEY, name TEXT UNIQUE, code TEXT NOT NULL UNIQUE,
          a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE (a, b), UNIQUE (a, c));
        CREATE TABLE indexed (a INT NOT NULL, "B c" INT NOT NULL, d INT);
        CREATE UNIQUE INDEX one ON indexed (a, "B c");
        CREATE UNIQUE INDEX two ON indexed (d);
        CREATE UNIQUE INDEX three ON indexed ((a + 1));
        """
    )
    catalog = read(connection)
    expected = [{"id"}, {"code"}, {"a", "b"}]
    assert found(catalog, "main.t").keys == frozenset(map(frozenset, expected))
    assert found(catalog, "main.indexed").keys == {frozenset({"a", "B c"})}


def test_a_collation_parts_columns_and_undoes_keys(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE t (x TEXT COLLATE nocase PRIMARY KEY, y TEXT, z STRUCT(x TEXT))"
    )
    connection.execute("INSERT INTO t (x) VALUES ('a'), ('A')")
    table = found(read(connection), "main.t")
    assert [c.type.collation for c in table.columns] == ["nocase", None, None]
    assert not table.column("x").type.joins_with(table.column("y").type)
    assert table.keys == frozenset()
    connection.execute("SET default_collation = 'nocase'")
    assert found(read(connection), "main.t").column("y").type.collation == "nocase"


def test_views_name_their_tables_with_schemas(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        """
        CREATE TABLE t (a INT, b INT); CREATE SCHEMA s; CREATE TABLE s.t (c INT);
        CREATE TABLE only_main (d INT);
        CREATE VIEW v AS SELECT a, x.b FROM T AS x WHERE a > 0;
        CREATE VIEW s.w (p, q) AS WITH t2 AS (SELECT c FROM t) SELECT c, d FROM t2, only_main;
        """
    )
    catalog = read(connection)
    texts = {view.name: view.sql for view in catalog.views}
    assert texts["v"] == "SELECT a, x.b FROM main.t AS x WHERE (a > 0)"
    assert "FROM s.t AS t" in texts["w"] and "main.only_main AS only_main" in texts["w"]
    assert "FROM t2" in texts["w"] and texts["w"].endswith("AS w(p, q)")
    for sql in ("SELECT count(*) FROM v", "SELECT count(q) FROM s.w WHERE p = 1"):
        assert isinstance(compile_query(sql, catalog), Query)


def test_a_view_that_cannot_be_read_stays_a_refusal(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT * FROM (PIVOT t ON a IN (1))"
    )
    (view,) = read(connection).views
    assert view.name == "v"


def test_a_schema_called_like_the_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sales.db"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE SCHEMA sales.sales; CREATE TABLE sales.sales.t (a INT)")
    with (
        closing(open_engine(f"duckdb:///{file}")) as engine,
        pytest.raises(UsageError, match="ambiguous"),
    ):
        engine.catalog()


def test_the_users_search_path_is_used_and_kept(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("ATTACH ':memory:' AS other; CREATE SCHEMA other.s; USE other.s")
    connection.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    with closing(open_engine(connection)) as engine:
        catalog = engine.catalog()
        assert catalog.search_path == ("s", "main")
        assert [t.label for t in catalog.tables] == ["s.t"]
        with engine.snapshot() as snapshot:
            assert snapshot.scalar(statement("SELECT count(*) FROM s.t")) == 1
    assert connection.execute("SELECT current_database()").fetchone() == ("other",)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_a_snapshot_does_not_see_later_changes(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    count = statement("SELECT count(*) FROM main.t")
    with closing(open_engine(connection)) as engine:
        with engine.snapshot() as snapshot:
            assert snapshot.scalar(count) == 1
            connection.execute("INSERT INTO t VALUES (2)")
            assert snapshot.scalar(count) == 1
        with engine.snapshot() as snapshot:
            assert snapshot.scalar(count) == 2


def test_an_open_transaction_of_the_user_is_neither_seen_nor_ended(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute("CREATE TABLE t (a INT); BEGIN; INSERT INTO t VALUES (1)")
    with closing(open_engine(connection)) as engine, engine.snapshot() as snapshot:
        assert snapshot.scalar(statement("SELECT count(*) FROM main.t")) == 0
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_snapshot_writes_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t (a INT)")
    for text in ("INSERT INTO main.t VALUES (1)", "DROP TABLE main.t", "CREATE TABLE u (a INT)"):
        with (
            closing(open_engine(connection)) as engine,
            pytest.raises(EngineFailed),
            engine.snapshot() as snapshot,
        ):
            snapshot.rows(statement(text))


def test_a_scalar_is_one_integer_or_a_failure(connection: duckdb.DuckDBPyConnection) -> None:
    with closing(open_engine(connection)) as engine, engine.snapshot() as snapshot:
        wide = "SELECT sum(x) FROM (VALUES (9223372036854775807), (9223372036854775807)) AS v(x)"
        assert snapshot.scalar(statement(wide)) == 2 * (2**63 - 1)
        assert snapshot.scalar(statement("SELECT CAST(7 AS DECIMAL(38,0))")) == 7
        for text in ("NULL", "1.5", "CAST(2 AS DOUBLE)", "TRUE", "'1'", "1, 2"):
            with pytest.raises(EngineFailed):
                snapshot.scalar(statement(f"SELECT {text}"))
        for text in ("SELECT 1 WHERE FALSE", "SELECT * FROM range(2)"):
            with pytest.raises(EngineFailed):
                snapshot.scalar(statement(text))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CAST(x AS INT) FROM main.t",
        "SELECT error(x) FROM main.t",
        "SELECT count(*) FROM main.nothing",
    ],
)
def test_errors_hold_nothing_of_the_data(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    connection.execute("CREATE TABLE t (x TEXT)")
    connection.execute("INSERT INTO t VALUES (?)", [SECRET])
    with (
        closing(open_engine(connection)) as engine,
        pytest.raises(EngineFailed) as caught,
        engine.snapshot() as snapshot,
    ):
        snapshot.rows(statement(text))
    error = caught.value
    assert SECRET not in error.describe() + repr(error) + str(error.args)
    assert error.__cause__ is None and error.__context__ is None


def test_keys_are_checked_on_the_data(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"""
        CREATE TABLE t (a INT, b TEXT, c INT);
        INSERT INTO t VALUES (1, '{SECRET}', 1), (2, '{SECRET}', 2), (3, 'y', NULL)
        """
    )
    with closing(open_engine(connection)) as engine:
        catalog = engine.catalog()
        engine.check_keys(catalog, {"t": [["a"], ["a", "b"]], "main.t": [["b", "a"]]})
        for columns in (["b"], ["c"], ["b", "c"]):
            with pytest.raises(UsageError) as caught:
                engine.check_keys(catalog, {"t": [["a"], columns]})
            assert caught.value.code == "key_violated"
            assert f"({', '.join(columns)})" in str(caught.value)
            assert SECRET not in caught.value.describe()
        wrong: list[dict[str, list[list[str]]]] = [
            {"t": [["zz"]]},
            {"t": [[]]},
            {"nothing": [["a"]]},
        ]
        for keys in wrong:
            with pytest.raises(UsageError):
                engine.check_keys(catalog, keys)


@pytest.fixture
def database_file(tmp_path: Path) -> Path:
    file = tmp_path / "data.db"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    return file


def count(engine: Engine, text: str) -> int:
    with engine.snapshot() as snapshot:
        return snapshot.scalar(statement(text))


def test_a_file_is_opened_for_reading(database_file: Path) -> None:
    before = database_file.read_bytes()
    with closing(open_engine(f"duckdb:///{database_file}")) as engine:
        assert [t.label for t in engine.catalog().tables] == ["main.t"]
        assert count(engine, "SELECT count(*) FROM main.t") == 2
        # Another reader is let in at the same time.
        with closing(open_engine(f"duckdb:///{database_file}")) as second:
            assert count(second, "SELECT count(*) FROM main.t") == 2
    assert database_file.read_bytes() == before


@pytest.mark.parametrize("name", ["main.db", "memory.db", 'it\'s "odd".v2.db', "SELECT.duckdb"])
def test_files_of_any_name(database_file: Path, name: str) -> None:
    renamed = database_file.rename(database_file.with_name(name))
    with closing(open_engine(f"duckdb:///{renamed}")) as engine:
        assert [t.label for t in engine.catalog().tables] == ["main.t"]
        assert count(engine, "SELECT count(*) FROM main.t") == 2


def test_a_file_that_is_being_written_is_refused(database_file: Path) -> None:
    with duckdb.connect(str(database_file)), pytest.raises(UsageError, match="writing"):
        open_engine(f"duckdb:///{database_file}")


def test_files_join_a_database(database_file: Path, tmp_path: Path) -> None:
    (tmp_path / "edge.txt").write_text("1 2\n")
    url = f"duckdb:///{database_file}"
    with closing(open_engine(url, tables={"edge": tmp_path / "edge.txt"})) as engine:
        assert [t.label for t in engine.catalog().tables] == ["main.edge", "main.t"]
        assert count(engine, "SELECT count(*) FROM main.edge JOIN main.t ON src = a") == 1
    with (
        closing(open_engine(url, tables={"T": tmp_path / "edge.txt"})) as engine,
        pytest.raises(UsageError, match="both"),
    ):
        engine.catalog()


def test_nothing_outside_is_within_reach(database_file: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with closing(open_engine(f"duckdb:///{database_file}")) as engine:
        for text in (
            f"SELECT * FROM read_csv('{secret}')",
            f"SELECT * FROM '{secret}'",
            "SET enable_external_access = true",
            "SET memory_limit = '1GB'",
            f"ATTACH '{tmp_path / 'new.db'}'",
        ):
            with pytest.raises(EngineFailed), engine.snapshot() as snapshot:
                snapshot.rows(statement(text))


def test_a_table_name_is_never_a_variable_of_the_program() -> None:
    setting = statement("SELECT current_setting('python_enable_replacements')")
    with closing(open_engine("duckdb://")) as engine, engine.snapshot() as snapshot:
        assert snapshot.rows(setting) == [(False,)]


def test_past_the_memory_limit_is_a_clear_error() -> None:
    wide = "SELECT count(*) FROM (SELECT DISTINCT range, hash(range) FROM range(3000000)) AS d"
    with closing(open_engine("duckdb://", memory_limit="20MB", threads=1)) as engine:
        with pytest.raises(EngineFailed) as caught:
            count(engine, wide)
        assert caught.value.code == "out_of_memory" and caught.value.hint
        assert count(engine, "SELECT 1") == 1


def test_what_is_spilled_is_for_this_user_only_and_goes(tmp_path: Path) -> None:
    distinct = "SELECT DISTINCT range AS a, hash(range) AS b FROM range(6000000)"
    engine = open_engine("duckdb://", memory_limit="100MB", threads=1, temp_directory=tmp_path)
    with engine.snapshot() as snapshot:
        snapshot.rows(statement(f"CREATE TEMPORARY TABLE big AS {distinct}"))
        assert snapshot.scalar(statement("SELECT count(*) FROM big")) == 6_000_000
        (spill,) = tmp_path.iterdir()
        assert list(spill.iterdir()) and spill.stat().st_mode & 0o077 == 0
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_settings_of_a_users_connection_stay(connection: duckdb.DuckDBPyConnection) -> None:
    settings = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    before = connection.execute(settings).fetchall()
    engine = open_engine(connection)
    assert isinstance(engine, DuckDBEngine)
    engine.catalog()
    engine.close()
    assert connection.execute(settings).fetchall() == before


def test_a_closed_connection_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    connection.close()
    with pytest.raises(UsageError):
        open_engine(connection)


def parquet(path: Path, sql: str) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return path


def test_of_files_alone_the_catalog_is_what_the_system_tables_say(tmp_path: Path) -> None:
    rows = parquet(tmp_path / "t.parquet", "SELECT 1 AS a, DATE '2020-01-01' AS b, 'x' AS c")
    text = tmp_path / "u.csv"
    text.write_text("a,b\n1,x\n", encoding="utf-8")
    for tables in ({"t": rows}, {"t": rows, "u": text}, {"u": text}):
        with closing(open_duckdb(tables=tables)) as engine:
            with engine.snapshot() as snapshot:
                asked = read_catalog(
                    snapshot.run, databases=("memory",), search_path=("main",), files=engine._files
                )
            assert engine.catalog() == asked
            # Nothing that a session could have set, no temporary table: nothing to carry over.
            assert _session_of(engine._connection) == ([], [])


def test_a_database_file_is_still_asked_for_its_functions(tmp_path: Path) -> None:
    file = tmp_path / "own.db"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (a INT); CREATE MACRO lag(a) AS 77")
    with (
        closing(open_duckdb(file, {"u": parquet(tmp_path / "u.parquet", "SELECT 1 AS a")})) as one,
        pytest.raises(UsageError, match="functions lag of its own"),
    ):
        one.catalog()


@settings(max_examples=examples(60), deadline=None)
@given(
    values=st.lists(st.none() | st.integers(-3, 12) | st.sampled_from([-(2**63), 2**63 - 1])),
    ordered=st.booleans(),
)
def test_a_key_holds_exactly_where_no_value_repeats_or_is_null(
    values: list[int | None], ordered: bool
) -> None:
    if ordered and None not in values:
        values.sort(key=lambda one: one or 0)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a BIGINT)")
        if values:
            connection.executemany("INSERT INTO t VALUES (?)", [[one] for one in values])
        with closing(open_engine(connection)) as engine:
            try:
                engine.check_keys(engine.catalog(), {"t": [["a"]]})
                holds = True
            except UsageError as error:
                assert error.code == "key_violated"
                holds = False
    assert holds == (None not in values and len(set(values)) == len(values))


@pytest.mark.parametrize(
    ("broken", "holds"),
    [
        ("i", True),
        ("-i", True),
        ("hash(i) % 1000000007 * 100000 + i", True),
        ("CASE WHEN i = 99999 THEN 5 ELSE i END", False),
        ("CASE WHEN i = 0 THEN 99999 ELSE i END", False),
        ("CASE WHEN i >= 50000 THEN i - 1 ELSE i END", False),
        ("CASE WHEN i = 2048 THEN NULL ELSE i END", False),
        ("CASE WHEN i = 0 THEN NULL ELSE i END", False),
        ("CASE WHEN i = 99999 THEN NULL ELSE i END", False),
    ],
)
def test_a_key_of_a_large_file_is_seen_whole(tmp_path: Path, broken: str, holds: bool) -> None:
    # Many row groups and threads: a repetition may be far from what it repeats.
    sql = f"SELECT CAST({broken} AS BIGINT) AS a FROM range(100000) AS r(i)"
    path = parquet(tmp_path / "t.parquet", sql)
    with closing(open_duckdb(tables={"t": path}, threads=4)) as engine:
        catalog = engine.catalog()
        if holds:
            engine.check_keys(catalog, {"t": [["a"]]})
            return
        with pytest.raises(UsageError, match="its values repeat or are null"):
            engine.check_keys(catalog, {"t": [["a"]]})


def test_the_other_keys_are_checked_where_one_file_does_not_fit(tmp_path: Path) -> None:
    good = parquet(tmp_path / "good.parquet", "SELECT unnest([1, 1]) AS a")
    text = tmp_path / "bad.csv"
    text.write_text("a\nx\n", encoding="utf-8")
    tables = {"bad": text, "good": good}
    with closing(open_duckdb(tables=tables, types={"bad": "a BIGINT"})) as engine:
        catalog = engine.catalog()
        engine.check_keys(catalog, {"bad": [["a"]]})
        with pytest.raises(UsageError, match=r"is not a key of table main\.good"):
            engine.check_keys(catalog, {"bad": [["a"]], "good": [["a"]]})
