"""Clauses after a single count: what they say of the released number, and what is refused."""

from __future__ import annotations

import pickle

import pytest

from sqlrs.compiler.afterwards import Afterwards
from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.understand import read_select
from sqlrs.errors import QueryRefused
from tests.compiler.schema import CATALOG, POSTGRES

COUNT = "SELECT count(*) AS n FROM edge"


def after(clauses: str, select: str = COUNT) -> Afterwards:
    found = [read_select(f"{select} {clauses}", catalog).after for catalog in (CATALOG, POSTGRES)]
    assert found[0] == found[1]
    assert pickle.loads(pickle.dumps(found[0])) == found[0]
    return found[0]


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        "ORDER BY 1",
        "ORDER BY n",
        "ORDER BY N DESC, 1 ASC NULLS FIRST",
        "ORDER BY count(*)",
        "LIMIT 1",
        "LIMIT (5) OFFSET 0",
        "OFFSET 0 ROWS FETCH NEXT 3 ROWS ONLY",
        "FETCH FIRST ROW ONLY",
        "ORDER BY 1 LIMIT 1001",
    ],
)
def test_the_row_is_always_shown(clauses: str) -> None:
    assert all(after(clauses).shows(number) for number in (-5, 0, 10**12))
    assert compile_query(f"{COUNT} {clauses}", CATALOG) == compile_query(COUNT, CATALOG)


@pytest.mark.parametrize("clauses", ["LIMIT 0", "OFFSET 1", "LIMIT 5 OFFSET 3", "LIMIT 0 OFFSET 0"])
def test_the_row_is_never_shown(clauses: str) -> None:
    assert after(clauses).never
    assert not after(clauses).shows(7)


@pytest.mark.parametrize(
    ("clauses", "shown"),
    [
        ("HAVING count(*) > 10", {11, 12}),
        ("HAVING 10 < count(*)", {11, 12}),
        ("HAVING count(*) >= 10 AND count(*) < 12", {10, 11}),
        ("HAVING count(*) BETWEEN 9 AND 10", {9, 10}),
        ("HAVING NOT count(*) = 9", {8, 10, 11, 12}),
        ("HAVING count(*) <> 9 ORDER BY 1 LIMIT 3", {8, 10, 11, 12}),
        ("HAVING count(*) > -1", {8, 9, 10, 11, 12}),
    ],
)
def test_having_compares_the_number(clauses: str, shown: set[int]) -> None:
    assert {number for number in range(8, 13) if after(clauses).shows(number)} == shown


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"{COUNT} ORDER BY src", "order_by"),
        (f"{COUNT} ORDER BY 2", "order_by"),
        (f"{COUNT} ORDER BY edge.n", "order_by"),
        (f"{COUNT} ORDER BY random()", "order_by"),
        (f"{COUNT} ORDER BY (SELECT 1)", "order_by"),
        (f"{COUNT} LIMIT (SELECT 1)", "limit"),
        (f"{COUNT} LIMIT -1", "limit"),
        (f"{COUNT} LIMIT 1.5", "limit"),
        (f"{COUNT} LIMIT 10%", "limit"),
        (f"{COUNT} LIMIT NULL", "limit"),
        (f"{COUNT} HAVING count(src) > 1", "having"),
        (f"{COUNT} HAVING src > 1", "having"),
        (f"{COUNT} HAVING count(*) > 1 OR count(*) < 0", "having"),
        (f"{COUNT} HAVING count(*) > 1.5", "having"),
        (f"{COUNT} HAVING count(*) > '1'", "having"),
        (f"{COUNT} HAVING count(*) > (SELECT count(*) FROM edge)", "having"),
        (f"{COUNT} HAVING random() < 0.5", "having"),
        ("SELECT src FROM edge ORDER BY src LIMIT 5", "not_a_count"),
        ("SELECT src, count(*) FROM edge GROUP BY src ORDER BY 2 LIMIT 5", "group_by"),
        ("SELECT sum(src) FROM edge LIMIT 5", "aggregate"),
        ("SELECT count(*) FROM (SELECT * FROM edge LIMIT 5) AS d LIMIT 5", "limit"),
        ("SELECT count(*) FROM (SELECT * FROM edge ORDER BY src) AS d", "order_by"),
        ("SELECT count(*) FROM limited LIMIT 5", "limit"),
        (f"{COUNT} LIMIT 5 FOR UPDATE", "locking"),
    ],
)
def test_everything_else_is_refused(sql: str, code: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        compile_query(sql, CATALOG, as_rows=True)
    assert refused.value.code == code


@pytest.mark.parametrize("clauses", ["FETCH FIRST 3 ROWS WITH TIES", "LIMIT 5 nonsense"])
def test_no_word_is_read_over(clauses: str) -> None:
    with pytest.raises(QueryRefused):
        compile_query(f"{COUNT} {clauses}", CATALOG, as_rows=True)
