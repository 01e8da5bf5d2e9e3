"""Intervals beside released aggregates."""

from __future__ import annotations

from itertools import product

import pytest
import sqlglot
from sqlglot import exp

from sqlrs.compiler.aggregates import average
from sqlrs.compiler.bars import shown_relation, with_error_bars
from sqlrs.engines.released import ReleasedRelation, afterwards

_MEAN = average(exp.column("a0", "released_0"), exp.column("a1", "released_0")).sql("duckdb")


def query(sql: str) -> exp.Query:
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    return tree


def bars(sql: str) -> str:
    return with_error_bars(query(sql), "duckdb").sql("duckdb")


def test_each_aggregate_gets_the_ends_of_its_interval() -> None:
    assert bars(
        "SELECT released_0.k0 AS ward, released_0.a0 AS n, released_0.a0 * 2 AS twice, "
        'released_0.a1 AS "Sum" FROM released_0 WHERE released_0.a0 > 5 ORDER BY 4, n LIMIT 3'
    ) == (
        "SELECT released_0.k0 AS ward, released_0.a0 AS n, released_0.a0_low AS n_low, "
        "released_0.a0_high AS n_high, released_0.a0 * 2 AS twice, "
        'released_0.a1 AS "Sum", released_0.a1_low AS "Sum_low", released_0.a1_high AS "Sum_high" '
        "FROM released_0 WHERE released_0.a0 > 5 ORDER BY 6, n LIMIT 3"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT released_0.k0 AS ward FROM released_0",
        "SELECT released_0.a0 * 2 AS n FROM released_0",
        "SELECT DISTINCT released_0.a0 AS n FROM released_0",
        "SELECT released_0.a0 AS n FROM released_0, public_0 AS w",
        "SELECT t.a0 AS n FROM (SELECT released_0.a0 AS a0 FROM released_0) AS t",
        "SELECT released_0.a0 AS n FROM released_0 UNION ALL SELECT 1 AS n",
        "SELECT public_1.a0 AS n FROM public_1",
    ],
)
def test_other_statements_stay_as_they_are(sql: str) -> None:
    assert shown_relation(query(sql)) is None
    assert bars(sql) == query(sql).sql("duckdb")


def test_the_relation_that_needs_them_is_named() -> None:
    assert shown_relation(query("SELECT a1 AS n FROM released_3")) == "released_3"


def test_a_name_that_is_taken_is_not_given_twice() -> None:
    assert bars("SELECT a0 AS n, k0 AS N_LOW FROM released_0") == (
        "SELECT a0 AS n, a0_high AS n_high, k0 AS N_LOW FROM released_0"
    )


def test_the_interval_of_an_average_holds_every_quotient() -> None:
    """All pairs of ends of either sign, against the quotients of a grid between them."""
    ends = [(-6, -2), (-6, 3), (-2, 0), (0, 0), (0, 5), (2, 7)]
    counts = [(-3, -1), (-1, 2), (0, 4), (1, 1), (1, 4), (3, 8)]
    rows = tuple(
        (low, low, high, below, below, above)
        for (low, high), (below, above) in product(ends, counts)
    )
    names = ("a0", "a0_low", "a0_high", "a1", "a1_low", "a1_high")
    relation = ReleasedRelation("released_0", tuple((name, "BIGINT") for name in names), rows)
    statement = with_error_bars(query(f"SELECT {_MEAN} AS m FROM released_0"), "duckdb")
    found = afterwards(statement, [relation])
    assert [name for name, _ in found.columns] == ["m", "m_low", "m_high"]
    for (_, low, high, _, below, above), (_, least, most) in zip(rows, found.rows, strict=True):
        if below <= 0:
            assert least is most is None
            continue
        quotients = [x / y for x in range(low, high + 1) for y in range(below, above + 1)]
        assert (least, most) == (min(quotients), max(quotients))
