"""Edge lists: directed or undirected, of any file kind, and how the command tells it."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqlrs
from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.config import Config
from sqlrs.errors import EngineFailed, QueryRefused, UsageError
from sqlrs.graphs.patterns import Edges, automorphisms, pattern_edges, pattern_sql
from sqlrs.ledger import MemoryLedger
from sqlrs.procedures import Definition

# A triangle with a tail and a loop, each edge once.
ONCE = [(1, 2), (2, 3), (1, 3), (3, 4), (5, 5)]
TRIANGLE = pattern_sql("triangle")
ROWS = "SELECT count(*) FROM edge"


def written(folder: Path, kind: str, edges: list[tuple[int, int]] = ONCE) -> Path:
    path = folder / f"graph.{kind}"
    if kind == "parquet":
        with duckdb.connect() as connection:
            values = ", ".join(map(str, edges))
            connection.sql(f"SELECT * FROM (VALUES {values}) t(u, v)").write_parquet(str(path))
    elif kind == "txt":
        path.write_text("".join(f"{a}\t{b}\n" for a, b in edges))
    else:
        separator = "\t" if kind == "tsv" else ","
        path.write_text("".join(f"{separator.join(map(str, e))}\n" for e in [("u", "v"), *edges]))
    return path


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "parquet"])
def test_undirected_edges_are_read_both_ways(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, [*ONCE, (2, 1), (1, 2)])
    with sqlrs.connect(tables={"edge": path}, graphs={"edge": "undirected"}) as database:
        (table,) = database.catalog.tables
        assert [c.name for c in table.columns] == ["src", "dst"]
        assert table.keys == {frozenset({"src", "dst"})}
        assert table.rows_per_unit == 2
        assert database.count(ROWS, epsilon=1000).value == 9
        assert database.sensitivity(TRIANGLE).count == 6


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_directed_edges_of_a_table_get_their_key(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, [*ONCE, (1, 2)])
    with sqlrs.connect(tables={"edge": path}, graphs={"edge": "directed"}) as database:
        (table,) = database.catalog.tables
        assert table.keys == {frozenset({"src", "dst"})}
        assert table.rows_per_unit == 1
        assert database.count(ROWS, epsilon=1000).value == 5


def test_what_is_no_edge_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a\n1\n")
    (tmp_path / "mixed.csv").write_text("a,b\n1,x\n")
    for name in ("one.csv", "mixed.csv"):
        with pytest.raises(UsageError, match="edge list") as refused:
            sqlrs.connect(tables={"edge": tmp_path / name}, graphs={"edge": "undirected"})
        assert "first two columns" in (refused.value.hint or "")
    path = written(tmp_path, "txt")
    with pytest.raises(UsageError, match="sideways"):
        sqlrs.connect(tables={"edge": path}, graphs={"edge": "sideways"})
    with pytest.raises(UsageError, match="no file"):
        sqlrs.connect(tables={"edge": path}, graphs={"friend": "undirected"})


def test_an_edge_without_an_end_fails_after_the_charge(tmp_path: Path) -> None:
    path = written(tmp_path, "csv")
    path.write_text(path.read_text() + "7,\n")
    ledger = MemoryLedger()
    graphs = {"edge": "undirected"}
    with (
        sqlrs.connect(tables={"edge": path}, graphs=graphs, ledger=ledger) as database,
        pytest.raises(EngineFailed),
    ):
        database.count(TRIANGLE, epsilon=1)
    assert len(ledger.history()) == 1


def test_the_sensitivity_is_that_of_an_undirected_edge(tmp_path: Path) -> None:
    """The change by the last edge of a triangle is 6; the bound of one row alone is smaller."""
    path = written(tmp_path, "txt", [(1, 2), (2, 3)])
    found = {}
    for form in ("directed", "undirected"):
        tables = {"edge": path if form == "undirected" else written(tmp_path, "tsv", BOTH)}
        with sqlrs.connect(tables=tables, graphs={"edge": form}) as database:
            found[form] = database.sensitivity(TRIANGLE, beta="10").value
    assert found["undirected"] >= 6 > found["directed"]


BOTH = [(1, 2), (2, 1), (2, 3), (3, 2)]


def test_the_ledger_and_the_explanation_say_what_is_protected(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    path, graphs = written(tmp_path, "txt"), {"edge": "undirected"}
    with sqlrs.connect(tables={"edge": path}, graphs=graphs, ledger=ledger) as database:
        assert "units of 2 rows" in str(database.explain(TRIANGLE))
        database.count(TRIANGLE, epsilon=1)
        for method in ("elastic", "smooth", "global"):
            with pytest.raises(QueryRefused, match="units of 2 rows"):
                database.sensitivity(TRIANGLE, method)
        assert set(database.sensitivities(TRIANGLE)) >= {"refined", "elastic"}
    assert "units of 2 rows of main.edge" in ledger.history()[0].charge.mechanism


def test_rows_per_unit_is_declared(tmp_path: Path) -> None:
    path = written(tmp_path, "txt")
    options: dict[str, Any] = {"tables": {"edge": path}}
    with sqlrs.connect(**options, rows_per_unit={"edge": 3}) as database:
        assert database.catalog.tables[0].rows_per_unit == 3
        wide = database.sensitivity(TRIANGLE).value
    with sqlrs.connect(**options) as database:
        assert database.sensitivity(TRIANGLE).value < wide
    for graphs, rows in (({}, 0), ({}, 101), ({}, "2"), ({}, True), ({"edge": "undirected"}, 0)):
        with pytest.raises(UsageError):
            sqlrs.connect(**options, graphs=graphs, rows_per_unit={"edge": rows})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="no table friend"):
        sqlrs.connect(**options, rows_per_unit={"friend": 2})
    with sqlrs.connect(
        **options, graphs={"edge": "undirected"}, rows_per_unit={"edge": 1}
    ) as database:
        assert database.catalog.tables[0].rows_per_unit == 2


def test_a_function_of_postgres_refuses_large_units() -> None:
    column = ColumnType(Family.INTEGER, "bigint")
    columns = (Column("src", column, False), Column("dst", column, False))
    keys = frozenset({frozenset({"src", "dst"})})
    edge = Table("edge", columns, keys, schema="public", rows_per_unit=2)
    catalog = Catalog("postgres", (edge,), search_path=("public",))
    with pytest.raises(UsageError, match="units of 2 rows"):
        Definition.of(TRIANGLE, catalog, name="triangles")


def test_the_configuration_holds_it_all(tmp_path: Path) -> None:
    written(tmp_path, "txt")
    (tmp_path / "visits.csv").write_text("id,day\n1,2024-01-02\n")
    (tmp_path / "sqlrs.toml").write_text(
        "[data.tables]\nedge = 'graph.txt'\nvisit = 'visits.csv'\n"
        "[data.graphs]\nedge = 'undirected'\n"
        "[data.types]\nvisit = 'id INTEGER, day DATE'\n"
        "[data.rows_per_unit]\nvisit = 4\n"
    )
    with Config.read(tmp_path / "sqlrs.toml").open() as database:
        assert {t.name: t.rows_per_unit for t in database.catalog.tables} == {"edge": 2, "visit": 4}
    assert not (tmp_path / "visits.csv.schema.toml").exists()
    for wrong in ("types = 3", "types = {visit = 3}", "graphs = {edge = 1}", "rows_per_unit = 2"):
        (tmp_path / "sqlrs.toml").write_text(f"[data]\n{wrong}\n")
        with pytest.raises(UsageError, match="must be"):
            Config.read(tmp_path / "sqlrs.toml")


def sqlrs_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sqlrs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_says_how_it_read_the_file(tmp_path: Path) -> None:
    path = str(written(tmp_path, "csv"))
    directed = sqlrs_command("graph", "triangle", path, "--epsilon", "1000", "--json")
    assert directed.returncode == 0
    public = [
        "answer",
        "clipping",
        "epsilon",
        "error_bars",
        "mechanism",
        "protects",
        "repeated",
    ]
    assert sorted(json.loads(directed.stdout)) == public
    inferred, reading, counting = directed.stderr.splitlines()
    assert inferred == (
        f"sqlrs: graph.csv: types inferred once: u BIGINT, v BIGINT; recorded in {path}.schema.toml"
    )
    assert "directed edges src → dst, repetitions removed; one row is protected" in reading
    assert "--undirected" in reading
    assert "each directed triangle counts 3 times" in counting
    assert "each triangle counts 6 times" in counting
    undirected = sqlrs_command("graph", "triangle", path, "--epsilon", "1000", "--undirected")
    assert undirected.stdout == "6\n"
    reading, counting = undirected.stderr.splitlines()
    assert "one undirected edge (two rows) is protected" in reading
    assert counting == "sqlrs: each triangle counts 6 times"


def test_a_table_of_a_query_may_be_undirected(tmp_path: Path) -> None:
    table = f"edge={written(tmp_path, 'txt')}"
    found = sqlrs_command(
        "count", ROWS, "--table", table, "--undirected", "edge", "--epsilon", "1000"
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "9\n", "")


def by_definition(edges: Edges, *, undirected: bool) -> int:
    linked = {*edges, *((b, a) for a, b in edges if undirected)}
    vertices = sorted({v for edge in edges for v in edge})
    maps = (dict(zip(vertices, image, strict=True)) for image in permutations(vertices))
    return sum({(m[a], m[b]) for a, b in linked} == linked for m in maps)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "triangle",
        "square",
        "two_triangles",
        "star1",
        "star3",
        "path2",
        "path4",
        "cycle6",
        "clique4",
    ],
)
def test_automorphisms(name: str, undirected: bool) -> None:
    edges = pattern_edges(name)
    assert automorphisms(edges, undirected=undirected) == by_definition(
        edges, undirected=undirected
    )


def test_automorphisms_of_the_largest_patterns_are_counted_at_once() -> None:
    assert automorphisms(pattern_edges("star10"), undirected=True) == factorial(10)
    assert automorphisms(pattern_edges("clique5"), undirected=True) == factorial(5)
