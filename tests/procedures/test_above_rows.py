"""What stands above the aggregates of an installed function: PostgreSQL's SQL on released rows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from tests.procedures.desk import Desk
from tests.procedures.test_tables import TABLES, asked
from tests.support.postgres_server import PostgresServer

WITHOUT_NOISE = (
    "CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric) "
    "RETURNS numeric LANGUAGE sql AS 'SELECT {}::numeric'"
)
# Each is its own plain statement too: all groups have rows.
STATEMENTS = [
    "SELECT ward, avg(cost) AS mean FROM visit WHERE ward IN ('A', 'B') GROUP BY ward ORDER BY 1",
    "SELECT avg(cost) AS mean, count(*) AS n FROM visit",
    "SELECT ward, count(*) AS n FROM visit WHERE ward IN ('A', 'B', 'o''n') GROUP BY ward "
    "HAVING count(*) > 66 ORDER BY n DESC, ward LIMIT 2",
    "SELECT urgent, count(*) / 7 AS sevenths, count(*) % 7 AS rest FROM visit GROUP BY urgent "
    "ORDER BY urgent NULLS LAST",
    "SELECT day, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent FROM visit "
    "WHERE day BETWEEN date '2024-01-01' AND date '2024-01-07' GROUP BY day ORDER BY day",
    "SELECT max(n) AS most FROM (SELECT urgent, count(*) AS n FROM visit GROUP BY urgent) AS t",
    "SELECT upper(ward) AS \"up%s\", CASE WHEN count(*) > 66 THEN 'many' ELSE 'few' END AS size "
    "FROM visit WHERE ward IN ('A', 'B') GROUP BY ward ORDER BY 1 OFFSET 1",
    "SELECT date_trunc('month', at) AS month, sum(cost) / count(*) AS mean FROM visit WHERE at >= "
    "timestamp '2024-01-01' AND at < timestamp '2024-04-01' GROUP BY 1 ORDER BY 1 DESC",
]


@pytest.fixture
def hospital(own_server: PostgresServer) -> Iterator[Desk]:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.run(TABLES)
        yield desk


@pytest.mark.parametrize("statement", STATEMENTS, ids=[one[:50] for one in STATEMENTS])
def test_without_noise_it_is_the_plain_statement(hospital: Desk, statement: str) -> None:
    hospital.install_table(statement)
    hospital.run(WITHOUT_NOISE.format(0))
    rows = asked(hospital)
    plain = hospital.run(statement)
    assert len(plain) == len(rows) > 0
    for row, expected in zip(rows, plain, strict=True):
        for value, other in zip(row, expected, strict=True):
            if isinstance(other, int | float | Decimal) and not isinstance(other, bool):
                assert float(value) == pytest.approx(float(other), rel=1e-12)
            else:
                assert value == other
    assert asked(hospital) == rows
    assert hospital.spent()["ada"] == 1000
    assert hospital.run("SELECT to_regclass('sqlrs.key_types')") == [(None,)]


def test_a_new_order_is_a_free_repeat_of_the_same_numbers(hospital: Desk) -> None:
    below = "SELECT urgent, count(*) AS n FROM visit GROUP BY urgent"
    hospital.install_table(below)
    first = asked(hospital, "0.1")
    hospital.install_table(f"{below} ORDER BY n LIMIT 2", name="least", budget=None,
                           dataset_budget=None)  # fmt: skip
    assert (
        hospital.run("SELECT * FROM sqlrs.least(0.1)", "ada")
        == sorted(first, key=lambda row: row[1])[:2]
    )
    assert hospital.spent()["ada"] == Decimal("0.1")


def test_an_average_pays_for_two_and_divides_by_no_zero(hospital: Desk) -> None:
    definition = hospital.install_table(
        "SELECT avg(cost) AS mean, 1 / count(cost) AS part FROM visit WHERE id < 0", repeats=False
    )
    assert definition.mechanism == "laplace noise, epsilon shared by 2"
    hospital.run(WITHOUT_NOISE.format(0))
    assert asked(hospital) == [(None, None)]
    # A count beyond all that is counted is the largest there is, and no failure.
    hospital.run(WITHOUT_NOISE.format("1e30"))
    ((mean, part),) = asked(hospital)
    assert float(mean) == pytest.approx(1e28 / float(2**63 - 1)) and part == 0


def test_it_reads_nothing_but_released_rows(hospital: Desk) -> None:
    """The tables are gone when a repeat is asked; of the true numbers nothing is told."""
    hospital.install_table(
        "SELECT urgent, count(*) * 2 AS twice FROM visit GROUP BY urgent HAVING count(*) < 1e18"
    )
    hospital.run(WITHOUT_NOISE.format("1000000"))
    rows = asked(hospital, "0.5")
    assert all(int(twice) > 2_000_000 for _, twice in rows)
    hospital.run("DELETE FROM stay; DELETE FROM visit")
    assert asked(hospital, "0.5") == rows
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        hospital.run("SELECT told FROM sqlrs.released_rows", "ada")
