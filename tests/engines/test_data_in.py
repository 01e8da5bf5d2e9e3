"""Data where it lies: folders, wildcards, partitions, compressed text, JSON, Excel, SQLite."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger

SECRET = "SECRET-7731"
CSV = "patient,day,age\n1,2024-01-02,30\n2,2024-01-03,41\n"
COUNT = "SELECT count(*) FROM visit"


def read(database: sqlrs.Database, table: str = "visit") -> list[tuple[object, ...]]:
    with database.engine.snapshot() as snapshot:
        return sorted(snapshot.rows(exp.select("*").from_(table)), key=repr)


def kinds(database: sqlrs.Database, table: str = "visit") -> dict[str, str]:
    found = next(one for one in database.catalog.tables if one.name == table)
    return {column.name: column.type.name for column in found.columns}


def parquet(path: Path, query: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.sql(query).write_parquet(str(path))


def partitioned(folder: Path) -> Path:
    parquet(folder / "year=2024" / "ward=a" / "0.parquet", "SELECT 1 AS patient, 30 AS age")
    parquet(folder / "year=2024" / "ward=b" / "0.parquet", "SELECT 2 AS patient, 41 AS age")
    parquet(folder / "year=2025" / "ward=a" / "0.parquet", "SELECT 3 AS patient, 52 AS age")
    return folder


def test_partitions_are_columns_and_their_types_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = partitioned(tmp_path / "visits")
    with sqlrs.connect(tables={"visit": folder}) as database:
        types = {"patient": "INTEGER", "age": "INTEGER", "year": "BIGINT", "ward": "VARCHAR"}
        assert kinds(database) == types
        asked = COUNT + " WHERE year = 2024 AND ward = 'a'"
        assert database.count(asked, epsilon=1000).value == 1
        with database.engine.snapshot() as snapshot:
            assert snapshot.rows(exp.select("count(*)").from_("duckdb_tables()")) == [(0,)]
    assert "year BIGINT, ward VARCHAR" in caplog.messages[0]
    # A new folder is a new row: it does not change a type.
    parquet(folder / "year=unknown" / "ward=a" / "0.parquet", "SELECT 3 AS patient, 52 AS age")
    ledger = MemoryLedger()
    with sqlrs.connect(tables={"visit": folder}, ledger=ledger) as database:
        assert kinds(database) == types
        with pytest.raises(EngineFailed):
            database.count(COUNT + " WHERE year > 0", epsilon=1)
        assert len(ledger.history()) == 1


def test_wildcards_and_declared_partitions(tmp_path: Path) -> None:
    partitioned(tmp_path / "visits")
    given = tmp_path / "visits" / "year=2024" / "*" / "*.parquet"
    with sqlrs.connect(tables={"visit": str(given)}) as database:
        assert set(kinds(database)) == {"patient", "age", "year", "ward"}
        assert len(read(database)) == 2
    types = {"visit": {"year": "INTEGER"}}
    with sqlrs.connect(tables={"visit": tmp_path / "visits"}, types=types) as database:
        assert (kinds(database)["year"], kinds(database)["ward"]) == ("INTEGER", "VARCHAR")
    with pytest.raises(UsageError, match="no file"):
        sqlrs.connect(tables={"visit": str(tmp_path / "*.parquet")})


def test_no_row_of_a_file_is_read_twice(tmp_path: Path) -> None:
    """Else what one row of it adds would be hidden by the noise of one row of the table."""
    folder = partitioned(tmp_path / "visits")
    given = str(tmp_path / "**" / "**" / "*.parquet")
    with sqlrs.connect(tables={"visit": given}) as database:
        assert len(read(database)) == 3
    newest = folder / "year=2025" / "ward=a" / "0.parquet"
    for link in (Path.symlink_to, Path.hardlink_to):
        linked = newest.with_name("newest.parquet")
        link(linked, newest)
        for path in (folder, given):
            with pytest.raises(UsageError, match="links to one file"):
                sqlrs.connect(tables={"visit": path})
        linked.unlink()
    with sqlrs.connect(tables={"visit": folder}) as database:
        assert len(read(database)) == 3


def test_a_file_of_a_folder_that_changes_ends_the_release(tmp_path: Path) -> None:
    folder = partitioned(tmp_path / "visits")
    with sqlrs.connect(tables={"visit": folder}) as database:
        parquet(folder / "year=2025" / "ward=a" / "0.parquet", "SELECT 3 AS patient, 99 AS age")
        with pytest.raises(EngineFailed):
            database.count(COUNT, epsilon=1)


def test_files_of_several_schemas_are_refused(tmp_path: Path) -> None:
    parquet(tmp_path / "v" / "0.parquet", "SELECT 1 AS patient")
    parquet(tmp_path / "v" / "1.parquet", "SELECT 1.5::DOUBLE AS patient")
    with pytest.raises(UsageError, match="same columns and types"):
        sqlrs.connect(tables={"visit": tmp_path / "v"})
    (tmp_path / "v" / "2.csv").write_text(CSV)
    with pytest.raises(UsageError, match="several kinds"):
        sqlrs.connect(tables={"visit": tmp_path / "v"})
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "0.csv").write_text(CSV)
    (tmp_path / "w" / "1.csv").write_text("other\n1\n")
    with pytest.raises(UsageError, match="same columns"):
        sqlrs.connect(tables={"visit": tmp_path / "w"})


def test_folders_of_text(tmp_path: Path) -> None:
    for year, text in (("2024", CSV), ("2025", CSV.replace("30", "3.5"))):
        (tmp_path / "v" / f"year={year}").mkdir(parents=True)
        (tmp_path / "v" / f"year={year}" / "x.csv").write_text(text)
    with sqlrs.connect(tables={"visit": tmp_path / "v"}) as database:
        types = {"patient": "BIGINT", "day": "DATE", "age": "DOUBLE", "year": "BIGINT"}
        assert kinds(database) == types
        assert database.count(COUNT + " WHERE year = 2025", epsilon=1000).value == 2
    assert (tmp_path / "v.schema.toml").exists()
    (tmp_path / "v" / "year=2025" / "x.csv").write_text("day,patient,age\n2024-01-02,1,1\n")
    with pytest.raises(UsageError, match="first line"):
        sqlrs.connect(tables={"visit": tmp_path / "v"})


def compressed(path: Path, text: str) -> Path:
    data = text.encode()
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(data))
        case ".bz2":
            path.write_bytes(bz2.compress(data))
        case ".xz":
            path.write_bytes(lzma.compress(data))
        case ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("inside.csv", text)
        case ".zst":
            (path.parent / "plain.csv").write_text(text)
            with duckdb.connect() as connection:
                rows = connection.read_csv(str(path.parent / "plain.csv"), all_varchar=True)
                rows.write_csv(str(path), compression="zstd")
    return path


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip", "zst"])
def test_compressed_text(tmp_path: Path, ending: str) -> None:
    path = compressed(tmp_path / f"visits.csv.{ending}", CSV)
    for _ in range(2):
        with sqlrs.connect(tables={"visit": path}, keys={"visit": ["patient"]}) as database:
            assert kinds(database) == {"patient": "BIGINT", "day": "DATE", "age": "BIGINT"}
            assert database.count(COUNT + " WHERE age > 35", epsilon=1000).value == 1


def test_what_cannot_be_unpacked_is_refused(tmp_path: Path) -> None:
    for name in ("v.csv.bz2", "v.csv.xz", "v.csv.zip"):
        (tmp_path / name).write_text(SECRET)
        with pytest.raises(UsageError, match="unpacked") as caught:
            sqlrs.connect(tables={"visit": tmp_path / name})
        assert SECRET not in caught.value.describe()
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    with pytest.raises(UsageError, match="2 files"):
        sqlrs.connect(tables={"visit": tmp_path / "two.csv.zip"})


def test_an_archive_that_is_damaged_is_refused(tmp_path: Path) -> None:
    """Its bytes may be no compressed text at all, which another error says than a wrong sum."""
    path = compressed(tmp_path / "visits.csv.zip", CSV + "1,2024-01-01,5\n" * 1000)
    whole = path.read_bytes()
    for place in (45, 60, 90):
        path.write_bytes(whole[:place] + b"\xff" * 12 + whole[place + 12 :])
        with pytest.raises(UsageError, match="unpacked"):
            sqlrs.connect(tables={"visit": path})


@pytest.mark.parametrize("ending", ["bz2", "xz", "zip"])
def test_what_unpacks_to_more_than_the_disk_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = compressed(tmp_path / f"visits.csv.{ending}", CSV + "1,2024-01-01,5\n" * 100_000)
    assert path.stat().st_size < 50_000
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=200_000))
    with pytest.raises(UsageError) as caught:
        sqlrs.connect(tables={"visit": path}, temp_directory=tmp_path)
    assert caught.value.code == "file_too_large"
    # Nothing of it stays.
    assert [one.name for one in tmp_path.iterdir() if one.is_dir()] == []


LINES = (
    '{"patient": 1, "day": "2024-01-02", "x": 1.5, "ok": true, "more": {"a": [1]}}\n'
    '{"patient": 2}\n'
)


@pytest.mark.parametrize("name", ["v.jsonl", "v.ndjson", "v.json", "v.jsonl.gz"])
def test_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = LINES.encode()
    if name == "v.json":
        data = f"[{LINES.strip().replace(chr(10), ',')}]".encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    for _ in range(2):
        with sqlrs.connect(tables={"visit": path}) as database:
            types = ("BIGINT", "DATE", "DOUBLE", "BOOLEAN", "VARCHAR")
            assert tuple(kinds(database).values()) == types
            assert read(database)[1] == (2, None, None, None, None)


@pytest.mark.parametrize("value", ["1.5", f'"{SECRET}"', "99999999999999999999", "[1]"])
def test_a_line_of_json_that_does_not_fit(tmp_path: Path, value: str) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(LINES)
    sqlrs.connect(tables={"visit": path}).close()
    path.write_text(LINES + f'{{"patient": {value}}}\n')
    with sqlrs.connect(tables={"visit": path}) as database:
        with pytest.raises(EngineFailed) as owner:
            database.sensitivity(COUNT)
        assert "row 3, column patient holds no BIGINT" in owner.value.message
        with pytest.raises(EngineFailed) as analyst:
            database.count(COUNT, epsilon=1)
        assert "row" not in analyst.value.message
        assert SECRET not in owner.value.describe()


def test_the_owner_is_told_the_row_of_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(CSV)
    sqlrs.connect(tables={"visit": path}).close()
    path.write_text(f"{CSV}3,{SECRET},4\n")
    with (
        sqlrs.connect(tables={"visit": path}) as database,
        pytest.raises(EngineFailed, match="row 3, column day holds no DATE") as owner,
    ):
        database.sensitivity(COUNT)
    assert SECRET not in owner.value.describe()


def book(path: Path, rows: list[list[Any]]) -> Path:
    made = openpyxl.Workbook()
    sheet = made.active
    assert sheet is not None
    sheet.title = "Visit"
    for row in rows:
        sheet.append(row)
    made.create_sheet("other").append(["x"])
    made.save(path)
    return path


def test_excel(tmp_path: Path) -> None:
    import datetime as dt

    day = dt.datetime(2024, 1, 2)
    head = ["patient", "day", "name", "x"]
    path = book(tmp_path / "v.xlsx", [head, [1, day, "a", 1.5], [2, None, None, 2]])
    for _ in range(2):
        with sqlrs.connect(tables={"visit": path}) as database:
            assert tuple(kinds(database).values()) == ("BIGINT", "DATE", "VARCHAR", "DOUBLE")
            assert read(database) == [(1, day.date(), "a", 1.5), (2, None, None, 2.0)]
    book(path, [head, [SECRET, day, "a", 1.5]])
    with sqlrs.connect(tables={"visit": path}) as database, pytest.raises(EngineFailed):
        database.count(COUNT, epsilon=1)
    book(path, [["patient", "other"], [1, 2]])
    with pytest.raises(UsageError, match="first line"):
        sqlrs.connect(tables={"visit": path})


def lite(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE visit (patient INTEGER, day DATE, paid DECIMAL(6,2), ok BOOL, note TEXT);"
            "INSERT INTO visit VALUES (1, '2024-01-02', 1.5, 1, ''), (2, NULL, NULL, 0, NULL);"
            "CREATE TABLE ward (name TEXT); INSERT INTO ward VALUES ('a');"
        )
    return path


def test_a_sheet_that_does_not_say_how_wide_it_is(tmp_path: Path) -> None:
    """Programs that write row by row leave the size out; a row then ends with its last cell."""
    path = tmp_path / "v.xlsx"
    made = openpyxl.Workbook(write_only=True)
    sheet = made.create_sheet("v")
    for row in (["a", "b"], [1], [None, 2], [3, 4, "beside"]):
        sheet.append(row)
    made.save(path)
    for types in (None, {"v": "a BIGINT, b BIGINT"}):
        with sqlrs.connect(tables={"v": path}, types=types) as db:
            assert db.count("SELECT count(*) FROM v WHERE b IS NULL", epsilon=1000).value == 1
            assert db.count("SELECT count(*) FROM v", epsilon=1000).value == 3


def test_sqlite(tmp_path: Path) -> None:
    path = lite(tmp_path / "app.db")
    with sqlrs.connect(str(path)) as database:
        assert {table.name for table in database.catalog.tables} == {"visit", "ward"}
        types = ("BIGINT", "DATE", "DECIMAL(6,2)", "BOOLEAN", "VARCHAR")
        assert tuple(kinds(database).values()) == types
        assert database.count(COUNT + " WHERE ok AND note = ''", epsilon=1000).value == 1
    path = path.rename(tmp_path / "app.sqlite")
    with sqlrs.connect(tables={"ward": path}) as database:
        assert read(database, "ward") == [("a",)]
    with pytest.raises(UsageError, match="no table other"):
        sqlrs.connect(tables={"other": path})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO visit (patient) VALUES (?)", (SECRET,))
    with sqlrs.connect(tables={"visit": path}) as database, pytest.raises(EngineFailed) as failed:
        database.count(COUNT, epsilon=1)
    assert SECRET not in failed.value.describe()


def test_a_folder_is_a_database(tmp_path: Path) -> None:
    (tmp_path / "visit.csv").write_text(CSV)
    parquet(tmp_path / "ward.parquet", "SELECT 1 AS id")
    parquet(tmp_path / "stay" / "0.parquet", "SELECT 1 AS id")
    (tmp_path / "README.md").write_text("words")
    for given in (tmp_path, str(tmp_path), f"{tmp_path}/"):
        with sqlrs.connect(given) as database:
            assert {table.name for table in database.catalog.tables} == {"visit", "ward", "stay"}
            assert all(table.private for table in database.catalog.tables)
    with sqlrs.connect(partitioned(tmp_path / "visits")) as database:
        assert [table.name for table in database.catalog.tables] == ["visits"]
    (tmp_path / "visit.tsv").write_text(CSV)
    with pytest.raises(UsageError, match="two tables visit"):
        sqlrs.connect(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no data"):
        sqlrs.connect(tmp_path / "empty")


def test_a_folder_that_cannot_be_searched_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "stay" / "0.parquet", "SELECT 1 AS id")
    seen = Path.is_file

    def closed(path: Path) -> bool:
        if path.name == "0.parquet":
            raise PermissionError(13, "Permission denied", str(path))
        return seen(path)

    monkeypatch.setattr(Path, "is_file", closed)
    for given in ({"target": tmp_path}, {"tables": {"stay": tmp_path / "stay"}}):
        with pytest.raises(UsageError, match=r"cannot be searched for data: .*0\.parquet"):
            sqlrs.connect(**given)


def test_paths_of_databases_and_files(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
        connection.sql("CREATE TABLE visit AS SELECT 1 AS ward FROM range(3)")
    (tmp_path / "ward.csv").write_text("id\n1\n2\n")
    tables = {"ward": tmp_path / "ward.csv"}
    with sqlrs.connect(tmp_path / "v.duckdb", tables=tables) as database:
        joined = COUNT + " JOIN ward ON visit.ward = ward.id"
        assert database.count(joined, epsilon=1000).value == 3
    with sqlrs.connect(str(tmp_path / "ward.csv")) as database:
        assert [table.name for table in database.catalog.tables] == ["ward"]
    with pytest.raises(UsageError, match="no file"):
        sqlrs.connect(str(tmp_path / "missing.duckdb"))
    with pytest.raises(UsageError, match="both"):
        sqlrs.connect(tmp_path / "ward.csv", tables=tables)


def test_a_database_and_a_file_on_the_command_line(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
        connection.sql("CREATE TABLE visit AS SELECT 1 AS ward FROM range(3)")
    (tmp_path / "ward.csv").write_text("id\n1\n2\n")
    asked = COUNT + " JOIN ward ON visit.ward = ward.id"
    command = [sys.executable, "-m", "sqlrs", "count", asked, "--epsilon", "1000"]
    command += ["--db", str(tmp_path / "v.duckdb"), "--table", f"ward={tmp_path}/ward.csv"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "3\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("edge.edges", "% a comment\n1 2 0.5\n\n2  3\t1.5\n1 2 0.5\n"),
        ("edge.txt", "# from to weight\n1\t2\t0.5\n2\t3\t1.5\n1\t2\t0.5\n"),
        ("edge.edges", "src,dst,weight\n1, 2, 0.5\n2,3,1.5\n1,2,0.5\n"),
    ],
)
def test_further_fields_of_an_edge_list_are_columns_by_their_names(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    types = {"edge": "src BIGINT, dst BIGINT, weight DECIMAL(4, 1)"}
    with sqlrs.connect(tables={"edge": tmp_path / name}, types=types) as database:
        # A plain table: nothing says that an edge stands there once.
        assert not database.catalog.tables[0].keys
        heavy = "SELECT count(*) FROM edge WHERE weight < 1 AND dst = 2"
        assert database.count(heavy, epsilon=1000).value == 2
    with pytest.raises(UsageError, match="3 fields, but 2"):
        sqlrs.connect(tables={"edge": tmp_path / name}, types={"edge": "src BIGINT, dst BIGINT"})
    with pytest.raises(UsageError, match="not both"):
        sqlrs.connect(tables={"edge": tmp_path / name}, types=types, graphs={"edge": "undirected"})


@pytest.mark.parametrize("line", ["3 4", "3 4 5 6", "3 4 x", "3 y 1", "3 4 0.55"])
def test_a_line_of_other_fields_fails(tmp_path: Path, line: str) -> None:
    (tmp_path / "edge.edges").write_text(f"1 2 0.5\n{line}\n", encoding="utf-8")
    types = {"edge": "src BIGINT, dst BIGINT, weight DECIMAL(4, 1)"}
    with (
        sqlrs.connect(tables={"edge": tmp_path / "edge.edges"}, types=types) as database,
        pytest.raises(EngineFailed),
    ):
        database.count("SELECT count(*) FROM edge", epsilon=1000)


def test_primary_keys_of_sqlite_are_keys_where_they_hold_no_null(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE visit (person INT NOT NULL, day TEXT NOT NULL, PRIMARY KEY (person, day));
            CREATE TABLE nullable (id INT PRIMARY KEY);
            CREATE TABLE untyped (id NOT NULL PRIMARY KEY);
            INSERT INTO person VALUES (1, 'a'), (2, NULL);
            INSERT INTO visit VALUES (1, 'x'), (1, 'X'), (2, 'x');
            INSERT INTO nullable VALUES (NULL), (NULL);
            INSERT INTO untyped VALUES (1), ('1');
            """
        )
    with sqlrs.connect(path) as database:
        keys = {table.name: table.keys for table in database.catalog.tables}
        assert keys == {
            "person": {frozenset({"id"})},
            "visit": {frozenset({"person", "day"})},
            "nullable": frozenset(),
            "untyped": frozenset(),
        }
        joined = "SELECT count(*) FROM person JOIN visit ON person.id = visit.person"
        assert database.count(joined, epsilon=1000).value == 3
        for name in ("nullable", "untyped"):
            assert database.count(f"SELECT count(*) FROM {name}", epsilon=1000).value == 2


@pytest.mark.parametrize(
    "url",
    ["s3://b/v.parquet", "https://h.invalid/v.csv", "az://b/v.parquet", "s3://b/v", "s3://b/"],
)
def test_addresses_need_an_extension(url: str) -> None:
    with pytest.raises(UsageError, match="extension") as caught:
        sqlrs.connect(tables={"visit": url})
    assert "INSTALL" in (caught.value.hint or "")
    assert "\n" not in (caught.value.hint or "")


def test_columns_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    parquet(tmp_path / "v.parquet", "SELECT range AS a, repeat('x', 9) AS b FROM range(9)")
    with sqlrs.connect(tmp_path / "v.parquet") as database, database.engine.snapshot() as snapshot:
        plan = exp.Command(this="EXPLAIN", expression="SELECT count(*) FROM v WHERE a = 1")
        text = "".join(str(cell) for row in snapshot.rows(plan) for cell in row)
        assert "READ_PARQUET" in text.upper()
        assert "b" not in {word.strip("│ \n") for word in text.split("│")}
