"""Which quotients are taken for alike: those of released numbers, never those of rows of data."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from sqlrs.proxy.policy.released_fractions import divides_released_fractions

ALIKE = [
    "SELECT 100.0 * count(*) / 7 FROM visit",
    "SELECT 100.0 * count(*) / sum(count(*)) OVER () FROM visit GROUP BY day",
    "SELECT n / 2.0 FROM (SELECT day, count(*) AS n FROM visit GROUP BY day) AS d",
    "SELECT day FROM visit GROUP BY day HAVING count(*) / 2.0 > 9",
]
# What is grouped by person is data still where persons are protected: it is summed, or filtered.
OF_DATA = [
    "SELECT sum(n / 2.0) FROM (SELECT person, count(*) AS n FROM visit GROUP BY person) AS p",
    "SELECT count(*) FILTER (WHERE n / 2.0 > 1) "
    "FROM (SELECT person, count(*) AS n FROM visit GROUP BY person) AS p",
    "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visit GROUP BY person) AS p "
    "WHERE n / 2.0 > 1",
    "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visit GROUP BY person) AS p "
    "GROUP BY n / 2.0",
    "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visit GROUP BY person) AS p "
    "JOIN (SELECT person, count(*) AS m FROM stay GROUP BY person) AS q ON p.n / 2.0 = q.m",
    "SELECT day / 2.0 FROM visit GROUP BY 1",
    "SELECT count(*) / 2 FROM visit",
]


def quotient(sql: str) -> exp.Div:
    found = parse_one(sql, dialect="postgres").find(exp.Div)
    assert found is not None
    return found


@pytest.mark.parametrize("sql", ALIKE)
def test_released_numbers_are_divided_alike(sql: str) -> None:
    assert divides_released_fractions(quotient(sql))


@pytest.mark.parametrize("sql", OF_DATA)
def test_nothing_else_is(sql: str) -> None:
    assert not divides_released_fractions(quotient(sql))
