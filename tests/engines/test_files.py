"""Loading files: formats, separators, comments, repetitions, and errors without contents."""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from sqlrs.catalog import Catalog, Family
from sqlrs.engines.base import Row
from sqlrs.engines.duckdb import DuckDBSnapshot
from sqlrs.engines.open import open_engine
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.trees.identifiers import identifier

SECRET = "SECRET-7731"


def load(path: Path, name: str = "t") -> tuple[Catalog, list[Row]]:
    query = exp.select("*").from_(exp.Table(this=identifier(name), db=identifier("main")))
    with (
        closing(open_engine("duckdb://", tables={name: path})) as engine,
        engine.snapshot() as snapshot,
    ):
        return engine.catalog(), sorted(snapshot.rows(query), key=repr)


def test_a_later_snapshot_finds_the_rows_without_beginning_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.txt").write_text("1 2\n2 3\n")
    query = exp.select("*").from_(exp.Table(this=identifier("t"), db=identifier("main")))
    run, texts = DuckDBSnapshot.run, list[str]()

    def heard(self: DuckDBSnapshot, sql: str, *rest: Any) -> list[Row]:
        texts.append(sql)
        return run(self, sql, *rest)

    monkeypatch.setattr(DuckDBSnapshot, "run", heard)

    def begun() -> int:
        """The transactions of one snapshot that reads the file."""
        texts.clear()
        with engine.snapshot() as snapshot:
            assert sorted(snapshot.rows(query)) == [(1, 2), (2, 3)]
        return sum("BEGIN" in text for text in texts)

    with closing(open_engine("duckdb://", tables={"t": tmp_path / "t.txt"})) as engine:
        # Its own, that of the loading, and another one that sees what was loaded.
        assert begun() == 3
        assert begun() == 1


EDGES = [
    "1\t2\n2\t3\n",
    "1 2\n2 3\n",
    "# Directed graph\n# Nodes: 3\n1\t2\n2\t3",
    "  1    2  \r\n\r\n2\t \t3\r\n",
    "1 2\n2 3\n1 2\n1\t2\n",
    "+1 2\n # comment\n02 3\n",
]


@pytest.mark.parametrize("text", EDGES)
@pytest.mark.parametrize("compressed", [False, True])
def test_edge_lists(tmp_path: Path, text: str, compressed: bool) -> None:
    path = tmp_path / ("edges.txt.gz" if compressed else "edges.txt")
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    catalog, rows = load(path, "edge")
    (table,) = catalog.tables
    assert rows == [(1, 2), (2, 3)]
    assert [(c.name, c.type.family, c.nullable) for c in table.columns] == [
        ("src", Family.INTEGER, False),
        ("dst", Family.INTEGER, False),
    ]
    assert table.keys == {frozenset({"src", "dst"})}


def test_an_empty_edge_list_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("# nothing\n")
    assert load(tmp_path / "none.txt")[1] == []


@pytest.mark.parametrize(
    "line",
    ["1 2 3", "1", "1,2", f"{SECRET} 1", "1.5 2", "99999999999999999999 1", '"1" 2', "1 2 #"],
)
def test_a_line_that_is_no_edge_fails_when_it_is_read(tmp_path: Path, line: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(f"1 2\n{line}\n")
    with pytest.raises(EngineFailed) as caught:
        load(path)
    assert caught.value.code == "file_unfit"
    assert SECRET not in caught.value.describe()
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "id,na me\n1,x\n2,\n"),
        ("t.csv", "id;na me\n1;x\n2;\n"),
        ("t.tsv", "id\tna me\n1\tx\n2\t\n"),
        ("T.TSV", "id\tna me\n1\tx\n2\t\n"),
        ("we[i]rd*.v2.csv", "id,na me\n1,x\n2,\n"),
    ],
)
def test_separated_values(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    catalog, rows = load(tmp_path / name, "Odd name")
    assert rows == [(1, "x"), (2, None)]
    (table,) = catalog.tables
    assert [(c.name, c.type.family) for c in table.columns] == [
        ("id", Family.INTEGER),
        ("na me", Family.TEXT),
    ]
    assert table.keys == frozenset()


def test_types_are_detected_on_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("x\n" + "1\n" * 50_000 + "word\n")
    assert load(path)[0].tables[0].columns[0].type.family is Family.TEXT


def test_repeated_rows_of_a_separated_file_stay(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n1,2\n")
    assert load(tmp_path / "t.csv")[1] == [(1, 2), (1, 2)]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "it's.parquet"
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT 1 AS a, DATE '2024-02-29' AS d")
        relation.write_parquet(str(path))
    catalog, _ = load(path)
    assert [c.type.family for c in catalog.tables[0].columns] == [Family.INTEGER, Family.DATE]


@pytest.mark.parametrize("name", ["t.doc", "t", "t.gz", "t.csv.rar", "t.parquet.gz"])
def test_unknown_kinds_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(UsageError, match="unknown"):
        load(tmp_path / name)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        load(tmp_path / "missing.csv")
    with pytest.raises(UsageError, match="holds no data"):
        (tmp_path / "folder.csv").mkdir()
        load(tmp_path / "folder.csv")
    (tmp_path / "bad.parquet").write_text(SECRET)
    with pytest.raises(UsageError) as caught:
        load(tmp_path / "bad.parquet")
    assert SECRET not in caught.value.describe()


def test_names_must_differ_and_be_there(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with pytest.raises(UsageError, match="two files"):
        open_engine("duckdb://", tables={"t": path, "T": path})
    with pytest.raises(UsageError, match="no name"):
        load(path, "")
