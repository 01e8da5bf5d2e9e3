"""Schemas of files are fixed before any row counts; rows that do not fit end the release."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.catalog import Family
from sqlrs.engines.base import Row
from sqlrs.engines.duckdb import DuckDBEngine
from sqlrs.engines.open import open_engine
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger

VISITS = "patient,day,age\n1,2024-01-02,30\n2,2024-01-03,41\n"
RECORD = "visits.csv.schema.toml"
SECRET = "SECRET-7731"
# The rows 1, 2 and NaN of a column x DOUBLE, as Apache Arrow writes them: least 1, greatest 2.
ARROW = base64.b64decode(
    "UEFSMRUAFTwVPCwVBhUAFQYVBhwYCAAAAAAAAABAGAgAAAAAAADwPxYAKAgAAAAAAAAAQBgIAAAAAAAA8D8REQAA"
    "AAIAAAAGAQAAAAAAAPA/AAAAAAAAAEAAAAAAAAD4fxUCGSw1ABgGc2NoZW1hFQIAFQolAhgBeAAWBhkcGRwmABwV"
    "ChklBgAZGAF4FQAWBha6ARa6ASYIPBgIAAAAAAAAAEAYCAAAAAAAAPA/FgAoCAAAAAAAAABAGAgAAAAAAADwPxER"
    "ABkcFQAVABUCADwpBhkmAAYAAAAWugEWBiYIFroBACggcGFycXVldC1jcHAtYXJyb3cgdmVyc2lvbiAyNi4wLjEZ"
    "HBwAAACsAAAAUEFSMQ=="
)
YOUNG = "SELECT count(*) FROM visit WHERE age < 50"


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text(VISITS)
    return path


def connected(path: Path, **options: object) -> sqlrs.Database:
    return sqlrs.connect(tables={"visit": path}, **options)  # type: ignore[arg-type]


def kinds(database: sqlrs.Database) -> dict[str, str]:
    (table,) = database.catalog.tables
    return {column.name: column.type.name for column in table.columns}


def rows(engine: object, query: exp.Select | None = None) -> list[Row]:
    assert isinstance(engine, DuckDBEngine)
    with engine.snapshot() as snapshot:
        return sorted(snapshot.rows(query or exp.select("*").from_("visit")), key=repr)


def test_types_are_inferred_once_told_and_recorded(
    visits: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(visits) as database:
        assert kinds(database) == {"patient": "BIGINT", "day": "DATE", "age": "BIGINT"}
    types = "patient BIGINT, day DATE, age BIGINT"
    told = f"visits.csv: types inferred once: {types}; recorded in {visits}"
    assert [told in message for message in caplog.messages] == [True]
    assert (visits.parent / RECORD).exists()
    caplog.clear()
    visits.write_text(VISITS.replace("30", "3.5"))
    with connected(visits) as database:
        assert kinds(database)["age"] == "BIGINT"
    assert caplog.messages == []


@pytest.mark.parametrize("value", ["3.5", "unknown", "99999999999999999999", "1e3", f'"{SECRET}"'])
def test_one_row_that_does_not_fit_ends_the_release_after_the_charge(
    visits: Path, value: str
) -> None:
    connected(visits).close()
    visits.write_text(f"{VISITS}3,2024-01-04,{value}\n")
    ledger = MemoryLedger()
    with connected(visits, ledger=ledger) as database:
        for spent in (1, 2):
            with pytest.raises(EngineFailed) as caught:
                database.count(YOUNG, epsilon=1)
            assert caught.value.code == "database_failed"
            assert SECRET not in caught.value.describe()
            assert sum(release.charge.epsilon for release in ledger.history()) == spent
        with pytest.raises(EngineFailed, match="does not fit its schema") as owner:
            database.sensitivity(YOUNG)
        assert owner.value.code == "file_unfit"
        assert SECRET not in owner.value.describe()


def test_declared_types(visits: Path) -> None:
    with connected(
        visits, types={"visit": 'patient INTEGER, "day" DATE, age DECIMAL(5, 2)'}
    ) as database:
        assert kinds(database) == {"patient": "INTEGER", "day": "DATE", "age": "DECIMAL(5,2)"}
        assert (rows(database.engine))[0][2] == Decimal("30.00")
    mapping = {"visit": {"patient": "BIGINT", "day": "VARCHAR", "age": "VARCHAR"}}
    with connected(visits, types=mapping) as database:
        assert kinds(database)["age"] == "VARCHAR"
    assert not (visits.parent / RECORD).exists()


@pytest.mark.parametrize(
    "types",
    [
        "patient BIGINT",
        "day DATE, patient BIGINT, age BIGINT",
        "patient BIGINT, day DATE, age NONSENSE",
        "patient BIGINT, day DATE, age BIGINT NOT NULL",
        "patient BIGINT, day DATE, Patient BIGINT",
        "patient, day, age",
        "patient BIGINT); DROP TABLE x; --",
        "",
        {},
        {"patient": 3},
        3,
    ],
)
def test_other_declarations_are_refused(visits: Path, types: object) -> None:
    with pytest.raises(UsageError) as caught:
        connected(visits, types={"visit": types})
    # The folder of the test has a number of its own.
    assert "30" not in caught.value.describe().replace(str(visits), "")


def test_types_are_for_text_files_that_are_there(visits: Path, tmp_path: Path) -> None:
    (tmp_path / "g.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"
    )
    with pytest.raises(UsageError, match="types of its own"):
        connected(tmp_path / "g.mtx", types={"visit": "src BIGINT, dst BIGINT"})
    with pytest.raises(UsageError, match="no file is given for table other"):
        connected(visits, types={"other": "a BIGINT"})


def test_the_header_is_part_of_the_schema(visits: Path) -> None:
    connected(visits).close()
    visits.write_text(VISITS.replace("age", "weight"))
    with pytest.raises(UsageError, match="first line") as caught:
        connected(visits)
    assert "weight" not in caught.value.describe()


def test_rows_do_not_matter_for_the_header(visits: Path) -> None:
    connected(visits).close()
    visits.write_bytes(VISITS.encode() + b"\xff\xfe,x\n" + b'"' + b"y" * 3_000_000)
    with connected(visits) as database, pytest.raises(EngineFailed):
        database.count(YOUNG, epsilon=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("31/12/2023;x\n01/02/2024;y\n", Family.DATE),
        ("1;x\n2;y\n", Family.INTEGER),
    ],
)
def test_other_forms_are_recorded_too(tmp_path: Path, text: str, expected: Family) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(text)
    with connected(path) as first:
        found = rows(first.engine)
    with connected(path) as second:
        assert second.catalog.tables[0].columns[0].type.family is expected
        assert rows(second.engine) == found
        assert len(found) == 2


@pytest.mark.parametrize(
    "record",
    [
        "nonsense",
        "",
        "[columns]\npatient = 'BIGINT'",
        "header = false\n",
        "header = false\nother = 1\n[columns]\na = 'BIGINT'",
        "header = false\ndelimiter = 1\n[columns]\na = 'BIGINT'",
        "header = false\n[columns]\na = 1",
        "header = false\n[columns]\na = 'NONSENSE'",
    ],
)
def test_a_record_that_says_nothing_is_refused(visits: Path, record: str) -> None:
    (visits.parent / RECORD).write_text(record)
    with pytest.raises(UsageError):
        connected(visits)


def test_a_record_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "visits.tsv"
    path.write_text("1|'a|b'\n2|c\n")
    (tmp_path / "visits.tsv.schema.toml").write_text(
        "delimiter = '|'\nquote = \"'\"\nheader = false\n[columns]\nid = 'BIGINT'\nword = 'VARCHAR'"
    )
    with connected(path) as database:
        assert rows(database.engine) == [(1, "a|b"), (2, "c")]


def test_a_record_that_cannot_be_written_tells_the_declaration(visits: Path) -> None:
    (visits.parent / RECORD).symlink_to(visits.parent / "nowhere" / "file")
    with pytest.raises(UsageError) as caught:
        connected(visits)
    assert "--types visit='patient BIGINT, day DATE, age BIGINT'" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["visits.csv", "visits.tsv", "visits.csv.gz"])
def test_empty_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match="empty"):
        connected(tmp_path / name)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1, 2], "list"),
        ("visits.csv", "str"),
        ({"visit": (1, 2)}, "tuple"),
        ({"visit": None}, "NoneType"),
        ({3: "visits.csv"}, "int"),
        ({"visit": type("DataFrame", (), {})()}, "DataFrame"),
    ],
)
def test_what_is_no_file_is_refused(given: object, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        sqlrs.connect(tables=given)  # type: ignore[arg-type]
    assert caught.value.hint is None or "tables=" in caught.value.hint


def test_a_single_name_is_one_name(visits: Path) -> None:
    with connected(visits, public="visit") as database:
        assert not database.catalog.tables[0].private
    with pytest.raises(UsageError, match="names of tables"):
        connected(visits, public=3)
    with pytest.raises(UsageError, match="names of tables"):
        connected(visits, private=[3])


def test_no_text_is_no_query(visits: Path) -> None:
    with connected(visits) as database:
        for ask in (database.explain, database.sql, database.sensitivity):
            with pytest.raises(UsageError, match="not None"):
                ask(None)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="not None"):
            database.count(None, epsilon=1)  # type: ignore[arg-type]


def parquet(path: Path, query: str) -> Path:
    with duckdb.connect() as connection:
        connection.sql(query).write_parquet(str(path))
    return path


@pytest.fixture
def scanned(tmp_path: Path) -> Iterator[tuple[Path, sqlrs.Database]]:
    path = parquet(tmp_path / "visits.parquet", "SELECT range AS patient, 40 AS age FROM range(9)")
    with connected(path) as database:
        yield path, database


def test_parquet_is_scanned_where_it_is(scanned: tuple[Path, sqlrs.Database]) -> None:
    path, database = scanned
    assert isinstance(database.engine, DuckDBEngine)
    assert database.count(YOUNG, epsilon=1000).value == 9
    with database.engine.snapshot() as snapshot:
        assert snapshot.run("SELECT count(*) FROM duckdb_tables()") == [(0,)]
    path.unlink()
    with pytest.raises(EngineFailed):
        database.count(YOUNG, epsilon=1000, analyst="other")


def test_only_the_named_files_can_be_read(
    scanned: tuple[Path, sqlrs.Database], tmp_path: Path
) -> None:
    _, database = scanned
    other = parquet(tmp_path / "other.parquet", "SELECT 1 AS a")
    (tmp_path / "other.csv").write_text("a\n1\n")
    assert isinstance(database.engine, DuckDBEngine)
    for source in (
        f"read_parquet('{other}')",
        f"read_csv('{tmp_path}/other.csv')",
        f"read_text('{tmp_path}/other.csv')",
        f"glob('{tmp_path}/*')",
        f"'{tmp_path}/other.csv'",
    ):
        with database.engine.snapshot() as snapshot, pytest.raises(EngineFailed):
            snapshot.run(f"SELECT * FROM {source}")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_changes_ends_the_release(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"visits.{kind}"

    def write(age: int) -> None:
        if kind == "csv":
            path.write_text(f"patient,age\n1,{age}\n2,{age}\n3,{age}\n")
        else:
            parquet(path, f"SELECT range AS patient, {age} AS age FROM range(3)")

    write(40)
    ledger = MemoryLedger()
    with connected(path, ledger=ledger) as database:
        write(500)
        with pytest.raises(EngineFailed) as caught:
            database.count(YOUNG, epsilon=1)
        assert caught.value.code == "database_failed"
        assert len(ledger.history()) == 1
        with pytest.raises(EngineFailed, match="has changed") as owner:
            database.sensitivity(YOUNG)
        assert owner.value.code == "file_changed"


def test_a_file_that_changes_within_a_snapshot_ends_it(
    scanned: tuple[Path, sqlrs.Database],
) -> None:
    path, database = scanned
    statement = exp.select("count(*)").from_("visit")
    with database.engine.snapshot() as snapshot:
        assert snapshot.scalar(statement) == 9
        parquet(path, "SELECT range AS patient, 40 AS age FROM range(8)")
        with pytest.raises(EngineFailed, match="has changed"):
            snapshot.scalar(statement)


def test_a_scan_and_a_load_see_the_same_special_values(tmp_path: Path) -> None:
    """Parquet's own minima and maxima leave NaN out; a scan by them would lose its row."""
    path = tmp_path / "x.parquet"
    path.write_bytes(ARROW)
    with sqlrs.connect(tables={"visit": path}) as database:
        assert isinstance(database.engine, DuckDBEngine)
        for condition in ("x > 100", "NOT x <= 2", "x = 'nan'::DOUBLE"):
            query = exp.select("count(*)").from_("visit").where(condition, dialect="duckdb")
            with database.engine.snapshot() as snapshot:
                assert snapshot.scalar(query) == 1
        with database.engine.snapshot() as snapshot:
            assert snapshot.run("SELECT count(*) FROM duckdb_views() WHERE NOT internal") == [(0,)]


def test_folders_add_no_columns(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    path = parquet(tmp_path / "year=2024" / "x.parquet", "SELECT 1 AS a")
    with sqlrs.connect(tables={"t": path}) as database:
        assert [c.name for c in database.catalog.tables[0].columns] == ["a"]


def test_names_with_wildcards_are_scanned(tmp_path: Path) -> None:
    parquet(tmp_path / "wei.parquet", "SELECT 2 AS a FROM range(5)")
    path = parquet(tmp_path / "w[e]i*.parquet", "SELECT 1 AS a")
    with sqlrs.connect(tables={"visit": path}) as database:
        assert rows(database.engine) == [(1,)]


def test_explaining_reads_no_row(visits: Path, tmp_path: Path) -> None:
    """Whatever stands in the rows: nothing is loaded, no key is checked."""
    connected(visits).close()
    visits.write_text(f"{VISITS}{SECRET}\n")
    (tmp_path / "edge.txt").write_text(f"{SECRET}\n")
    files = {"visit": visits, "edge": tmp_path / "edge.txt"}
    keys = {"visit": ["patient"]}
    with sqlrs.connect(tables=files, keys=keys, schema_only=True) as database:
        assert "visit.age < 50" in str(database.explain(YOUNG))
        assert database.sql("SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src")
        with pytest.raises(UsageError, match="schema only"):
            database.count(YOUNG, epsilon=1)
        with pytest.raises(UsageError, match="schema only"):
            database.sensitivity(YOUNG)


def test_a_key_of_rows_that_do_not_fit_is_never_believed(visits: Path) -> None:
    connected(visits).close()
    visits.write_text(f"{VISITS}3,2024-01-04,unknown\n")
    with connected(visits, keys={"visit": ["patient"]}) as database:
        for _ in range(2):
            with pytest.raises(EngineFailed):
                database.count(YOUNG, epsilon=1)


def test_the_keys_of_other_tables_are_checked_all_the_same(visits: Path, tmp_path: Path) -> None:
    connected(visits).close()
    visits.write_text(f"{VISITS}3,2024-01-04,unknown\n")
    (tmp_path / "person.csv").write_text("id\n1\n1\n")
    files = {"visit": visits, "person": tmp_path / "person.csv"}
    with pytest.raises(UsageError) as caught:
        sqlrs.connect(tables=files, keys={"visit": ["patient"], "person": ["id"]})
    assert caught.value.code == "key_violated"


def test_a_relative_path_stays_the_file_it_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "visits.parquet", "SELECT 1 AS a")
    monkeypatch.chdir(tmp_path)
    with connected(Path("visits.parquet")) as database:
        monkeypatch.chdir("/")
        assert rows(database.engine) == [(1,)]


def test_other_tables_stay_usable(visits: Path, tmp_path: Path) -> None:
    (tmp_path / "edge.txt").write_text(f"{SECRET}\n")
    with sqlrs.connect(tables={"visit": visits, "edge": tmp_path / "edge.txt"}) as database:
        with pytest.raises(EngineFailed):
            database.count("SELECT count(*) FROM edge", epsilon=1)
        assert database.count("SELECT count(*) FROM visit", epsilon=1000).value == 2


def test_several_snapshots_load_once(visits: Path) -> None:
    with closing(open_engine("duckdb://", tables={"visit": visits})) as engine:
        found: list[list[Row]] = []
        threads = [threading.Thread(target=lambda: found.append(rows(engine))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [found[0]] * 8
        assert len(found[0]) == 2


def test_a_table_that_loads_later_is_seen_by_an_open_snapshot(visits: Path) -> None:
    everything = exp.select("count(*)").from_("visit")
    with (
        closing(open_engine("duckdb://", tables={"visit": visits})) as engine,
        engine.snapshot() as early,
    ):
        with engine.snapshot() as late:
            assert late.scalar(everything) == 2
        assert early.scalar(everything) == 2


@pytest.mark.parametrize(
    ("name", "text", "skip", "first"),
    [
        ("visits.tsv", "# by us, 2024\n% more\n\nname\tage\nann\t30\nbob\t60\n", 3, "name"),
        ("visits.csv", "# by us\nname,age\nann,30\nbob,60\n", 1, "name"),
        # The names themselves stand behind a comment's sign, also below a comment.
        ("visits.csv", "#name,age\nann,30\nbob,60\n", 0, "#name"),
        ("visits.csv", "# by us\n#name,age\nann,30\nbob,60\n", 1, "#name"),
        # Below the names such a line is a row.
        ("visits.csv", "name,age\n#ann,30\n#bob,60\n", 0, "name"),
    ],
)
def test_comments_may_stand_above_the_names(
    tmp_path: Path, name: str, text: str, skip: int, first: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    for _ in range(2):
        with connected(path) as database:
            assert kinds(database) == {first: "VARCHAR", "age": "BIGINT"}
            assert database.count(YOUNG, 1000).value == 1
    record = path.with_name(f"{name}.schema.toml")
    assert (f"skip = {skip}\n" in record.read_text()) == (skip > 0)
    record.unlink()
    with connected(path, types={"visit": {first: "VARCHAR", "age": "BIGINT"}}) as database:
        assert database.count(YOUNG, 1000).value == 1
    record.write_text('skip = -1\nheader = false\n[columns]\nage = "BIGINT"\n')
    with pytest.raises(UsageError, match="skip is the number of lines"):
        connected(path)
