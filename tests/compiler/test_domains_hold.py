"""No row lies outside: every value that a key has in random rows is in the key's domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from sqlrs.catalog import Listed
from tests.compiler.domain_cases import (
    DIALECTS,
    FINITE,
    HELD,
    LEFT,
    PUBLIC,
    TABLES,
    VISIT,
    domains_of,
    rows_of,
)
from tests.support.engine_fixtures import BothEngines, Row
from tests.support.examples import examples

CASES = [
    *(("FROM visit", key) for key, _ in FINITE),
    *((f"FROM visit WHERE {where}", key) for where, key, _ in LEFT),
    *((body, key) for body, key, _ in HELD),
]
_DAYS = [
    *("infinity", "-infinity", "1995-03-04", "1997-12-31", "2004-12-31", "2023-12-31"),
    *("2024-01-01", "2024-01-02", "2024-02-29", "2024-03-01"),
]
_MOMENTS = [
    *("infinity", "-infinity", "2023-01-01 00:00:00", "2023-01-01 12:00:00"),
    *("2023-02-28 23:59:59.999999", "2023-03-01 00:00:00", "2024-01-01 12:30:00"),
    *("2024-02-29 05:59:00", "2020-12-31 23:00:00", "2024-02-28 22:59:59.000001"),
    *("2024-02-28 23:58:59.999999", "2024-02-29 00:00:00", "2024-02-29 00:59:59.999999"),
]


def maybe(values: Sequence[object]) -> st.SearchStrategy[object]:
    return st.sampled_from([None, *values])


ROWS = st.lists(
    st.tuples(
        maybe([10, 11, 12, 13, 14]),  # nation
        maybe([1, 2]),  # hidden
        maybe("FOP"),  # status
        st.integers(1, 5),  # grade
        maybe([0, 9, 10, 118, 120]),  # age
        maybe([0, 1, 2, 2**40]),  # wide
        maybe(["2024-01-01", "2024-01-02", "2024-01-03"]),  # held
        maybe(["1.50", "2.00"]),  # fee
        maybe(_DAYS),  # day
        maybe(_MOMENTS),  # at
        maybe([True, False]),  # urgent
        st.booleans(),  # sure
        maybe([0.0, -0.0, 0.5, 1.5, 2.5, -0.1, float("nan"), float("inf")]),  # score
        maybe(["a", "A", "b", "x", "y", "it's", ""]),  # name
        maybe([-4, -1, 0, 1, 2, 3, 4, 7, 8, 13, 2**31 - 1, -(2**31)]),  # number
        st.sampled_from([-5, 0, 1, 3, 9, 2**31 - 1]),  # place
        maybe(["-0.50", "-0.01", "0.00", "9.99", "10.00", "29.99"]),  # cost
    ),
    min_size=1,
    max_size=8,
)


def found(both: BothEngines, dialect: str, body: str, key: str) -> set[object]:
    """The keys of the plain query, as the analyst would have written it."""
    statement = parse_one(f"SELECT {key} {body} GROUP BY 1", dialect=dialect)
    assert isinstance(statement, exp.Select)
    with both.engines[dialect].snapshot() as snapshot:
        return {row[0] for row in snapshot.rows(statement)}


def load(both: BothEngines, rows: Sequence[Row]) -> None:
    both.load(TABLES, {**PUBLIC, "visit": [(i, *row) for i, row in enumerate(rows)]})


@pytest.mark.postgres
def test_every_key_of_random_rows_is_in_its_domain(both_engines: BothEngines) -> None:
    @cache
    def domain(dialect: str, body: str, key: str) -> set[object]:
        [one] = domains_of(dialect, body, key)
        return {row[0] for row in rows_of(one, dialect, both_engines)}

    @settings(max_examples=examples(10))
    @given(ROWS, st.lists(st.sampled_from(CASES), min_size=10, max_size=20, unique=True))
    def check(rows: list[Row], cases: list[tuple[str, str]]) -> None:
        load(both_engines, rows)
        for body, key in cases:
            for dialect in DIALECTS:
                outside = found(both_engines, dialect, body, key) - domain(dialect, body, key)
                assert not outside, (dialect, body, key)

    check()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_domain_that_lacks_a_value_is_noticed(both_engines: BothEngines, dialect: str) -> None:
    """The control: a schema that promises too much."""
    row: Row = (10, 1, "P", 1, 0, 0, None, None, None, None, True, True, 0.5, "a", 1, 1, "0.00")
    load(both_engines, [row])
    columns = tuple(
        replace(one, domain=Listed(("F", "O"), "wrong")) if one.name == "status" else one
        for one in VISIT.columns
    )
    tables = [*TABLES[:-1], replace(VISIT, columns=columns)]
    [domain] = domains_of(dialect, "FROM visit", "status", tables=tables)
    inside = {one[0] for one in rows_of(domain, dialect, both_engines)}
    assert found(both_engines, dialect, "FROM visit", "status") - inside == {"P"}
