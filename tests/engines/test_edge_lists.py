"""Edge lists of all forms: comments, headers, separators, weights, names, Matrix Market."""

from __future__ import annotations

import bz2
import lzma
import zipfile
from pathlib import Path

import pytest
from sqlglot import exp

import sqlrs
from sqlrs.engines.edge_lists import EdgeForm
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger

SECRET = "SECRET-7731"
NUMBERS = [(1, 2), (2, 3)]
NAMES = [("alice", "bob b"), ("bob b", "carol")]


def edges(path: Path, form: str = "directed") -> list[tuple[object, ...]]:
    with (
        sqlrs.connect(tables={"edge": path}, graphs={"edge": form}) as database,
        database.engine.snapshot() as snapshot,
    ):
        return sorted(snapshot.rows(exp.select("src", "dst").from_("edge")))


FORMS = [
    ("g.txt", "% made by hand\n# really\n1 2\n2 3\n", NUMBERS),
    ("g.txt", "FromNodeId\tToNodeId\n1\t2\n2\t3\n", NUMBERS),
    ("g.txt", "# c\nsource,target,weight\n1,2,0.5\n2,3,-1e9\n", NUMBERS),
    ("g.edges", "1 2 1167609600\n2 3 1167609601\n", NUMBERS),
    ("g.edges", "% sym\n1;2\n2;3\n", NUMBERS),
    ("g.csv", "# c\nu,v\n1,2\n2,3\n", NUMBERS),
    ("g.csv", "u,v,weight\n1,2,7\n2,3,8\n", NUMBERS),
    ("g.tsv", "%c\n1\t2\t5\n2\t3\t5\n", NUMBERS),
    ("g.edgelist", "from to\nalice bob\nbob carol\n", [("alice", "bob"), ("bob", "carol")]),
    ("g.txt", "a b\nb c\nc a\n", [("a", "b"), ("b", "c"), ("c", "a")]),
    ("g.el", "alice\tbob b\nbob b\tcarol\n", NAMES),
    ("g.txt", "alice, bob b\nbob b ,carol\n", NAMES),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n% c\n3 3 2\n1 2\n2 3\n", NUMBERS),
    ("g.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 .5\n2 3 3\n", NUMBERS),
]


@pytest.mark.parametrize(("name", "text", "expected"), FORMS)
def test_forms(tmp_path: Path, name: str, text: str, expected: list[tuple[object, object]]) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert edges(path) == expected
    # The second time by what was recorded.
    both = {*expected, *((b, a) for a, b in expected)}
    assert set(edges(path, "undirected")) == both


def test_a_symmetric_matrix_is_undirected(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    with pytest.raises(UsageError, match="once") as caught:
        edges(path)
    assert "--undirected" in (caught.value.hint or "")
    assert len(edges(path, "undirected")) == 4
    path.write_text("1 2\n")
    with pytest.raises(UsageError, match="Matrix Market"):
        edges(path)


def test_the_form_is_found_once_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line in front must not turn the ids of the whole graph into names."""
    path = tmp_path / "g.txt"
    path.write_text("1 2\n2 3\n")
    assert edges(path) == NUMBERS
    assert caplog.messages == []
    path.write_text(f"{SECRET} 2\n2 3\n")
    ledger = MemoryLedger()
    with sqlrs.connect(tables={"edge": path}, ledger=ledger) as database:
        assert {c.type.name for c in database.catalog.tables[0].columns} == {"BIGINT"}
        with pytest.raises(EngineFailed) as caught:
            database.count("SELECT count(*) FROM edge", epsilon=1)
        assert caught.value.code == "database_failed"
        assert len(ledger.history()) == 1
    other = tmp_path / "h.txt"
    other.write_text("alice bob\n")
    edges(other)
    assert [message.split(";")[0] for message in caplog.messages] == [
        "sqlrs: h.txt: form found once: names"
    ]


def test_a_header_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("# c\nu,v\n1,2\n")
    edges(path)
    path.write_text(f"# c\n{SECRET},v\n1,2\n")
    with pytest.raises(UsageError, match="first line") as caught:
        edges(path)
    assert SECRET not in caught.value.describe()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 2 3", "line 4 has 3 fields instead of 2"),
        ("1", "line 4 has 1 field instead of 2"),
        (f"1 {SECRET}", "line 4 has a text instead of an integer in field 2"),
        ("1.5 2", "line 4 has a number with a fraction or exponent instead of an integer"),
        ('"1" 2', "line 4 has a text in quotes instead of an integer in field 1"),
        ("1 99999999999999999999", "line 4 has an integer of more than 64 bits"),
    ],
)
def test_the_owner_is_told_the_line_and_the_kind(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "g.txt"
    path.write_text(f"# c\n1 2\n\n{line}\n3 4\n")
    with sqlrs.connect(tables={"edge": path}) as database:
        with pytest.raises(EngineFailed) as owner:
            database.sensitivity("SELECT count(*) FROM edge")
        assert said in owner.value.message
        assert SECRET not in owner.value.describe()
        with pytest.raises(EngineFailed) as analyst:
            database.count("SELECT count(*) FROM edge", epsilon=1)
        assert "line" not in analyst.value.describe()


@pytest.mark.parametrize(
    "record",
    [
        "nonsense",
        'format = "edges"',
        'format="edges"\nseparator="dot"\nfields=2\nheader=false\nids="BIGINT"',
        'format="edges"\nseparator="space"\nfields=1\nheader=false\nids="BIGINT"',
        'format="edges"\nseparator="space"\nfields=2\nheader=true\nids="BIGINT"',
    ],
)
def test_records_that_say_nothing_are_refused(tmp_path: Path, record: str) -> None:
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "g.txt.schema.toml").write_text(record)
    with pytest.raises(UsageError):
        edges(tmp_path / "g.txt")


@pytest.mark.parametrize("ending", ["bz2", "xz", "zip"])
def test_packed_edge_lists(tmp_path: Path, ending: str) -> None:
    path, text = tmp_path / f"g.txt.{ending}", b"# c\n1 2\n2 3\n"
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("g.txt", text)
    else:
        path.write_bytes(bz2.compress(text) if ending == "bz2" else lzma.compress(text))
    assert edges(path) == NUMBERS


def test_every_form_takes_what_it_was_found_in() -> None:
    import re

    for form, line in (
        (EdgeForm(), " 1\t2 "),
        (EdgeForm("comma", 3), "1 , 2,x"),
        (EdgeForm("tab", 2, None, "VARCHAR"), "a b\tc"),
        (EdgeForm("space", 4, None, "VARCHAR"), "a b c d"),
    ):
        assert re.match(form.pattern, line)
        assert not re.match(form.pattern, line + ",more") or form.separator in ("tab", "space")
