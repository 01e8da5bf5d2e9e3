"""The five collaboration graphs of the paper and the numbers it prints, where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp

_DATA = Path(__file__).parents[3] / "shared"
QUICK = ["HepTh", "GrQc"]
LARGE = ["CondMat", "AstroPh", "HepPh"]
GRAPHS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]


def printed(row: str, query: str, graph: str) -> int:
    """One cell of Table 1."""
    path = _DATA / "table1.json"
    if not path.is_file():
        pytest.skip("the paper's Table 1 is not at hand")
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return int(table["queries"][query][row][table["order"].index(graph)])


def load(graph: str) -> duckdb.DuckDBPyConnection:
    """A database with the table edge(src, dst)."""
    path = _DATA / "snap" / f"ca-{graph}.txt.gz"
    if not path.is_file():
        pytest.skip(f"the graph {graph} is not at hand")
    connection = duckdb.connect()
    relation = connection.read_csv(
        str(path),
        header=False,
        sep="\t",
        auto_detect=False,
        comment="#",
        columns={"src": "BIGINT", "dst": "BIGINT"},
    )
    relation.distinct().create("edge")
    return connection


def value(connection: duckdb.DuckDBPyConnection, tree: exp.Select) -> int:
    """The one number a statement returns."""
    row = connection.execute(tree.sql("duckdb")).fetchone()
    assert row is not None
    return int(row[0])
