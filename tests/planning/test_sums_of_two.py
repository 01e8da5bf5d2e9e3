"""How the rows of a join of two are counted, so that DuckDB groups neither for nothing."""

from __future__ import annotations

import pytest

from sqlrs.planning.choose import choose
from sqlrs.residuals.residual import Residuals
from sqlrs.sql import plain as emit
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.support.builders import EDGE, atom, query

ROWS = [(a, b) for a in range(6) for b in range(6) if (a * b) % 3 != 1]


@pytest.mark.parametrize(
    ("edges", "members", "written"),
    [
        # The ends of a path: each edge has one.
        ("ab bc ca", {0, 1}, "SUM(1)"),
        # The edges that a vertex leads to, by the vertex and by nothing of the second edge.
        ("ab bc xa", {0, 1}, "COUNT(*)"),
    ],
)
def test_by_what_the_groups_keep(
    on_duckdb: Direct, edges: str, members: set[int], written: str
) -> None:
    residuals = Residuals(query(*(atom(EDGE, *p) for p in edges.split())))
    residual = residuals.of(frozenset(members))
    statement = statement_of(choose(residual, how="factorised"), "duckdb")
    assert written in statement.sql("duckdb")
    on_duckdb.fill(EDGE, ROWS)
    assert on_duckdb.scalar(statement) == on_duckdb.scalar(emit.plain(residual))
