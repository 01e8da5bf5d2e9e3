"""Graph patterns: the right edges, and SQL whose count on a complete graph is known."""

from __future__ import annotations

from math import perm

import duckdb
import pytest

from sqlrs.errors import UsageError
from sqlrs.graphs.patterns import pattern_edges, pattern_sql


@pytest.mark.parametrize(
    ("name", "edges", "vertices"),
    [
        ("triangle", 3, 3),
        ("square", 4, 4),
        ("two_triangles", 5, 4),
        ("star3", 3, 4),
        ("path4", 4, 5),
        ("cycle5", 5, 5),
        ("clique4", 6, 4),
        ("path1", 1, 2),
    ],
)
def test_on_a_complete_graph_every_choice_of_vertices_counts(
    name: str, edges: int, vertices: int
) -> None:
    assert len(pattern_edges(name)) == edges
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(
        "CREATE TABLE edge AS SELECT a.i AS src, b.i AS dst "
        "FROM range(6) a(i), range(6) b(i) WHERE a.i <> b.i"
    )
    row = connection.execute(pattern_sql(name)).fetchone()
    assert row == (perm(6, vertices),)


@pytest.mark.parametrize(
    "name", ["hexagon", "star0", "cycle2", "clique2", "star", "path99", "clique6", ""]
)
def test_unknown_or_too_large_patterns_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        pattern_edges(name)
