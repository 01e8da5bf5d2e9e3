"""Statements with groups, sums and outer joins, from text to table, against the plain answers.

With epsilon 1000 the noise on small numbers is 0 but for a chance that nobody meets: what is left
is the exact answer, which the engine itself gives too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal

import duckdb
import psycopg
import pytest
import sqlglot

import sqlrs
from sqlrs.compiler import statement
from sqlrs.errors import EngineFailed, QueryRefused, Span, UsageError
from sqlrs.measures import KeyDomain
from tests.support.postgres_server import PostgresServer

SCHEMA = """
CREATE TABLE region (r_id INTEGER PRIMARY KEY, r_name VARCHAR NOT NULL);
CREATE TABLE nation (n_id INTEGER PRIMARY KEY, n_name VARCHAR NOT NULL, n_region INTEGER NOT NULL);
CREATE TABLE customer (
    c_id INTEGER PRIMARY KEY, c_nation INTEGER NOT NULL REFERENCES nation (n_id),
    c_segment VARCHAR NOT NULL CHECK (c_segment IN ('car', 'home')), c_vip BOOLEAN);
CREATE TABLE orders (
    o_id INTEGER PRIMARY KEY, o_cust INTEGER NOT NULL, o_date DATE NOT NULL,
    o_total DECIMAL(9, 2), o_status VARCHAR);
INSERT INTO region VALUES (1, 'EU'), (2, 'ASIA');
INSERT INTO nation VALUES (1, 'FR', 1), (2, 'DE', 1), (3, 'JP', 2);
INSERT INTO customer
    SELECT i, i % 3 + 1, CASE WHEN i % 2 = 0 THEN 'car' ELSE 'home' END,
           CASE i % 3 WHEN 0 THEN TRUE WHEN 1 THEN FALSE END
    FROM generate_series(1, 40) AS g(i);
INSERT INTO orders
    SELECT i, i % 45 + 1, DATE '2024-01-01' + CAST(i * 5 % 300 AS INTEGER),
           CASE WHEN i % 11 = 0 THEN NULL ELSE (i % 50) + 0.25 END,
           CASE WHEN i % 7 = 0 THEN NULL WHEN i % 2 = 0 THEN 'open' ELSE 'done' END
    FROM generate_series(1, 120) AS g(i);
"""


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[sqlrs.Database]:
    with ExitStack() as stack:
        if request.param == "duckdb":
            target: object = _copy()
        else:
            target = stack.enter_context(request.getfixturevalue("postgres_server").database())
            with psycopg.connect(str(target), autocommit=True) as connection:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    connection.execute(statement.encode())
        yield stack.enter_context(
            sqlrs.connect(
                target,
                public=["region", "nation"],
                bounds={"orders.o_total": [0, 100]},
                domains={"orders.o_status": ["open", "done"]},
            )
        )


def plain(database: sqlrs.Database, sql: str) -> list[tuple[object, ...]]:
    tree = sqlglot.parse_one(sql, read=database.catalog.dialect)
    with database.engine.snapshot() as snapshot:
        return snapshot.rows(tree)  # type: ignore[arg-type]


# Statements whose groups all have rows, so that the plain answer has them all.
SAME_AS_PLAIN = [
    "SELECT count(*) FROM customer",
    "SELECT count(*) AS n, count(DISTINCT o_cust) AS buyers FROM orders",
    "SELECT c_segment, count(*) FROM customer GROUP BY c_segment ORDER BY 1",
    "SELECT c_segment AS s, count(*) AS n FROM customer GROUP BY s HAVING count(*) > 5 "
    "ORDER BY n DESC, s LIMIT 1",
    "SELECT n_name, count(*) FROM customer JOIN nation ON c_nation = n_id GROUP BY 1 ORDER BY 1",
    "SELECT c_nation, count(*) FROM customer GROUP BY c_nation ORDER BY 1",
    "SELECT n_name, r_name, count(*) FROM customer JOIN nation ON c_nation = n_id "
    "JOIN region ON n_region = r_id GROUP BY n_name, r_name ORDER BY 1",
    "SELECT n_name, count(*) FROM customer JOIN nation ON c_nation = n_id JOIN region "
    "ON n_region = r_id WHERE r_name = 'EU' GROUP BY n_name ORDER BY 1",
    "SELECT c_vip, count(*) FROM customer GROUP BY c_vip ORDER BY 1 NULLS LAST",
    "SELECT extract(month FROM o_date) AS m, count(*) FROM orders "
    "WHERE o_date BETWEEN DATE '2024-01-01' AND DATE '2024-06-30' GROUP BY m ORDER BY m",
    "SELECT CASE WHEN o_total > 25 THEN 'large' ELSE 'small' END AS size, count(*) "
    "FROM orders GROUP BY 1 ORDER BY 1",
    "SELECT o_status, count(*), count(o_total) FROM orders GROUP BY o_status ORDER BY 1 NULLS LAST",
    "SELECT sum(o_total) FROM orders",
    "SELECT o_status, sum(o_total) AS total FROM orders GROUP BY 1 ORDER BY 1 NULLS LAST",
    "SELECT n_name, sum(o_total) FROM customer JOIN orders ON c_id = o_cust "
    "JOIN nation ON c_nation = n_id GROUP BY n_name ORDER BY n_name",
    "SELECT n_name, count(*) FROM customer JOIN orders ON c_id = o_cust "
    "JOIN nation ON c_nation = n_id GROUP BY n_name ORDER BY n_name",
    "SELECT n_name, count(DISTINCT o_cust) FROM customer JOIN orders ON c_id = o_cust "
    "JOIN nation ON c_nation = n_id GROUP BY n_name ORDER BY n_name",
    "SELECT count(*) FROM customer LEFT JOIN orders ON c_id = o_cust WHERE o_id IS NULL",
    "SELECT count(*) FROM customer WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_cust = c_id)",
    "SELECT c_segment, count(*) FROM customer LEFT JOIN orders ON c_id = o_cust "
    "GROUP BY c_segment ORDER BY 1",
    "SELECT c_segment, sum(o_total) FROM customer LEFT JOIN orders ON c_id = o_cust "
    "GROUP BY c_segment ORDER BY 1",
    "SELECT sum(CASE WHEN o_status = 'open' THEN 1 ELSE 0 END) FROM orders",
    "SELECT c_segment, count(*) FILTER (WHERE c_vip) AS vips FROM customer GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM (SELECT c_id FROM customer UNION ALL SELECT o_cust FROM orders) AS u",
    "WITH per AS (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) "
    "SELECT n_name, n FROM per JOIN nation ON c_nation = n_id ORDER BY n_name",
    "SELECT max(n) FROM (SELECT c_segment, count(*) AS n FROM customer GROUP BY c_segment) AS g",
    "SELECT c_segment, count(*), rank() OVER (ORDER BY count(*) DESC, c_segment) AS place "
    "FROM customer GROUP BY c_segment ORDER BY place",
    "SELECT o_status, sum(o_total * 2 - 1) FROM orders WHERE o_status IS NOT NULL "
    "GROUP BY o_status ORDER BY 1",
    "SELECT c_segment, n_name, count(*) FROM customer JOIN nation ON c_nation = n_id "
    "GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT o_status, count(*) FROM customer LEFT JOIN orders ON c_id = o_cust "
    "GROUP BY o_status ORDER BY 1 NULLS LAST",
    "SELECT n_name, count(*) FROM customer LEFT JOIN nation ON c_nation = n_id AND n_id < 3 "
    "GROUP BY n_name ORDER BY 1 NULLS LAST",
    "SELECT count(*), (SELECT count(*) FROM nation) FROM customer",
    "SELECT o_total > 10 AS large, count(*) FROM customer LEFT JOIN orders ON c_id = o_cust "
    "GROUP BY 1 ORDER BY 1 NULLS LAST",
    "SELECT n_id % 2 AS odd, count(*) FROM customer LEFT JOIN nation ON c_nation = n_id "
    "AND n_id < 3 GROUP BY 1 ORDER BY 1 NULLS LAST",
]


@pytest.mark.parametrize("sql", SAME_AS_PLAIN)
def test_without_noise_it_is_the_plain_answer(database: sqlrs.Database, sql: str) -> None:
    found, expected = list(database.query(sql, 1000)), plain(database, sql)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for value, true in zip(one, other, strict=True):
            # Sums are of hundredths: their noise is not 0, but below what a mistake would make.
            close = isinstance(value, Decimal) and isinstance(true, Decimal)
            assert abs(value - true) < 10 if close else value == true  # type: ignore[operator]


def test_an_average_is_a_sum_over_a_count(database: sqlrs.Database) -> None:
    sql = "SELECT avg(o_total) FROM orders"
    ((found,),) = database.query(sql, 1000)
    ((expected,),) = plain(database, sql)
    assert float(str(found)) == pytest.approx(float(str(expected)), abs=0.2)


def test_groups_without_rows_are_shown(database: sqlrs.Database) -> None:
    sql = "SELECT c_segment, count(*) FROM customer WHERE c_segment = 'car' GROUP BY c_segment"
    assert database.query(sql, 1000).rows == (("car", 20),)
    joined = "customer JOIN nation ON c_nation = n_id"
    sql = f"SELECT n_name, count(*) FROM {joined} WHERE c_id < 0 GROUP BY 1"
    assert sorted(database.query(sql, 1000).rows) == [("DE", 0), ("FR", 0), ("JP", 0)]


def test_one_charge_and_what_stands_above_is_free() -> None:
    ledger = sqlrs.MemoryLedger()
    with sqlrs.connect(_copy(), public=["region", "nation"], ledger=ledger) as fresh:
        first = fresh.query("SELECT c_segment, count(*) FROM customer GROUP BY 1", 1)
        again = fresh.query(
            "SELECT c_segment, count(*) AS n FROM customer GROUP BY 1 HAVING count(*) > -1000000 "
            "ORDER BY n DESC",
            1,
        )
        assert not first.repeated and again.repeated
        assert sorted(map(str, first.rows)) == sorted(map(str, again.rows))
        assert first.epsilon == Decimal(1)
        assert len(ledger.history()) == 1


_ONE_COUNT = [
    "SELECT count(*) FROM customer",
    "SELECT count(DISTINCT o_cust) FROM orders WHERE o_total > 5",
    "SELECT count(*) FROM orders a JOIN orders b ON a.o_cust = b.o_cust",
]


@pytest.mark.parametrize("bars", [None, "0.25"])
@pytest.mark.parametrize("sql", _ONE_COUNT)
def test_a_count_and_the_same_as_a_statement_are_one_release(sql: str, bars: str | None) -> None:
    for statement_first in (False, True):
        ledger = sqlrs.MemoryLedger()
        with sqlrs.connect(_copy(), public=["region", "nation"], ledger=ledger) as fresh:
            if statement_first:
                table = fresh.query(sql, 1, error_bars=bars)
                answer = fresh.count(sql, 1, error_bars=bars)
            else:
                answer = fresh.count(sql, 1, error_bars=bars)
                table = fresh.query(f"{sql} ORDER BY 1", 1, error_bars=bars)
            assert (table.repeated, answer.repeated) == (not statement_first, statement_first)
            (charged,) = ledger.history()
            ends = () if answer.error_bars is None else (answer.error_bars.low,)
            assert table.rows[0][: 1 + len(ends)] == (answer.value, *ends)
            told = answer.error_bars and (((answer.error_bars.low, answer.error_bars.high),),)
            assert table.error_bars == told
            assert table.epsilon == answer.epsilon == charged.charge.epsilon


def test_what_is_no_such_count_is_another_release() -> None:
    ledger = sqlrs.MemoryLedger()
    with sqlrs.connect(_copy(), public=["region", "nation"], ledger=ledger) as fresh:
        fresh.count("SELECT count(*) FROM orders", 1)
        others = [
            "SELECT count(*), count(*) FILTER (WHERE o_total > 5) FROM orders",
            "SELECT o_status, count(*) FROM orders WHERE o_status IN ('A', 'B') GROUP BY o_status",
            "SELECT sum(least(greatest(o_id, 0), 1)) FROM orders",
            "SELECT sum(-least(greatest(o_id, 0), 1)) FROM orders",
            "SELECT sum(3) FROM orders",
            "SELECT count(*) FROM (SELECT o_id FROM orders UNION ALL SELECT o_id FROM orders) AS t",
        ]
        for sql in others:
            assert not fresh.query(sql, 1).repeated, sql
        # Another price is another release.
        assert not fresh.query("SELECT count(*) FROM orders", 2).repeated


def test_neighbours_are_named_where_the_data_is_opened() -> None:
    sql = "SELECT c_segment, count(*) FROM customer GROUP BY 1"
    with (
        sqlrs.connect(_copy(), neighbours="add-remove") as fewer,
        sqlrs.connect(_copy()) as strict,
    ):
        assert (fewer.settings.neighbours, strict.settings.neighbours) == ("add-remove", "strict")
        assert "standard error 1.41" in fewer.query(sql, 1).mechanism
        assert "standard error 2.83" in strict.query(sql, 1).mechanism
    with pytest.raises(sqlrs.UsageError):
        sqlrs.connect(_copy(), neighbours="any")


class _LastLook(sqlrs.MemoryLedger):
    """A ledger after whose record the data engine is of no use any more."""

    def settle(self, ticket: int, answer: str) -> None:
        super().settle(ticket, answer)
        self.unplug()

    def unplug(self) -> None:
        """Set by the test."""


def test_what_stands_above_never_meets_the_data_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = _LastLook()
    with sqlrs.connect(_copy(), public=["region", "nation"], ledger=ledger) as database:

        def broken(*_: object) -> None:
            raise AssertionError("the data engine was asked after the release")

        def unplug() -> None:
            for step in ("snapshot", "catalog", "check_keys"):
                monkeypatch.setattr(database.engine, step, broken)

        monkeypatch.setattr(ledger, "unplug", unplug)
        answer = database.query(
            "SELECT n_name, 100.0 * count(*) / sum(count(*)) OVER () AS share FROM customer "
            "JOIN nation ON c_nation = n_id GROUP BY n_name HAVING count(*) > -1000 ORDER BY 2",
            1,
        )
        assert len(answer) == 3
        with pytest.raises(EngineFailed):
            database.query("SELECT count(*) FROM customer", 1)


def _copy() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(SCHEMA)
    return connection


REFUSED = {
    "SELECT o_date, count(*) FROM orders GROUP BY o_date": "unknown_domain",
    "SELECT o_cust, count(*) FROM orders GROUP BY o_cust": "unknown_domain",
    "SELECT sum(o_cust) FROM orders": "unknown_bounds",
    "SELECT sum(count(*)) FROM orders": "aggregate",
    "SELECT max(o_total) FROM orders": "aggregate",
    "SELECT sum(DISTINCT o_total) FROM orders": "aggregate",
    "SELECT o_total FROM orders": "not_a_count",
    "SELECT c_segment, c_id, count(*) FROM customer GROUP BY c_segment": "not_grouped",
    "SELECT c_segment FROM customer GROUP BY c_segment": "group_by",
    # What fails on public values fails before the charge.
    "SELECT n_name, count(*) FROM customer JOIN nation ON c_nation = n_id "
    "WHERE CAST(n_name AS INTEGER) > 0 GROUP BY n_name": "unknown_domain",
}


@pytest.mark.parametrize(("sql", "code"), REFUSED.items())
def test_bad_statements_are_refused_before_the_charge(sql: str, code: str) -> None:
    ledger = sqlrs.MemoryLedger()
    with (
        sqlrs.connect(
            _copy(), public=["region", "nation"], bounds={"orders.o_total": [0, 100]}, ledger=ledger
        ) as database,
        pytest.raises(QueryRefused) as refused,
    ):
        database.query(sql, 1)
    assert refused.value.code == code
    assert refused.value.hint
    assert ledger.history() == ()


def test_too_many_groups_are_refused_before_the_charge() -> None:
    ledger = sqlrs.MemoryLedger()
    with (
        sqlrs.connect(
            _copy(), public=["nation"], ledger=ledger, settings=sqlrs.Settings(max_groups=2)
        ) as database,
        pytest.raises(QueryRefused) as refused,
    ):
        database.query(text := "SELECT count(*) FROM customer GROUP BY c_nation", 1)
    assert refused.value.code == "too_many_groups"
    assert refused.value.span == Span(text.index("c_nation"), len(text))
    assert ledger.history() == ()


def test_a_count_may_be_a_signed_sum(database: sqlrs.Database) -> None:
    sql = "SELECT count(*) FROM customer LEFT JOIN orders ON c_id = o_cust WHERE o_id IS NULL"
    answer = database.count(sql, 1000)
    assert [(answer.value,)] == plain(database, sql)
    with pytest.raises(QueryRefused) as refused:
        database.count("SELECT c_segment, count(*) FROM customer GROUP BY 1", 1)
    assert refused.value.code == "not_a_count"


def test_no_mechanism_is_chosen_for_a_statement(database: sqlrs.Database) -> None:
    with pytest.raises(UsageError):
        database.count(
            "SELECT count(*) FROM customer LEFT JOIN orders ON c_id = o_cust", 1, mechanism="cauchy"
        )


def test_error_bars_stand_beside_the_numbers(database: sqlrs.Database) -> None:
    answer = database.query(
        "SELECT c_segment, count(*) AS n FROM customer GROUP BY c_segment ORDER BY 1",
        500,
        error_bars=500,
    )
    assert answer.names == ("c_segment", "n", "n_low", "n_high")
    for _, value, low, high in answer:
        assert isinstance(low, int) and isinstance(high, int) and low <= value <= high  # type: ignore[operator]
    # The width of this noise is public, so that its error bars cost nothing.
    assert answer.epsilon == 500


def test_error_bars_that_follow_the_data_are_paid_for(database: sqlrs.Database) -> None:
    sql = (
        "SELECT n_name, count(*) AS n FROM customer JOIN orders ON c_id = o_cust "
        "JOIN nation ON c_nation = n_id GROUP BY n_name ORDER BY 1"
    )
    answer = database.query(sql, 100, error_bars=50)
    assert answer.epsilon == 150
    assert answer.names == ("n_name", "n", "n_low", "n_high")


def test_an_explanation_says_domains_groups_and_noise(database: sqlrs.Database) -> None:
    text = str(database.explain("SELECT c_vip, c_segment, count(*) FROM customer GROUP BY 1, 2"))
    assert "6 groups" in text
    assert "CHECK of" in text
    assert "laplace noise for each of 6 groups" in text


def test_texts_that_share_numbers_read_them_each_in_its_own_order() -> None:
    true = {"n": 40, "v": 27}
    with sqlrs.connect(_copy(), public=["region", "nation"]) as fresh:
        for number, sql in enumerate(
            [
                "SELECT count(*) AS n, count(c_id) AS n, count(c_vip) AS v FROM customer",
                "SELECT count(*) AS n, count(c_vip) AS v, 0 + count(c_vip) AS v FROM customer",
                "SELECT count(*) AS n, count(c_vip) AS v, "
                "sum(CASE WHEN c_vip IS NOT NULL THEN 1 ELSE 0 END) AS v FROM customer",
                "SELECT sum(1) AS n, count(c_vip) AS v, count(*) AS n FROM customer",
            ]
        ):
            answer = fresh.query(sql, 1000)
            assert answer.rows == (tuple(true[name] for name in answer.names),)
            assert answer.repeated is (number > 0)


FREE = [
    "SELECT count(*) AS n, count(n_id) AS m FROM shown_nation",
    "SELECT n_name, count(*) FROM shown_nation GROUP BY n_name",
    "SELECT count(*), count(c_vip) FROM customer WHERE c_id < 3 AND c_id > 5",
    # There is no group: a cast that fails on private rows must not tell of them for nothing.
    "SELECT n_name, count(*) FROM customer JOIN nation ON c_nation = n_id "
    "WHERE n_name = 'UK' AND CAST(c_segment AS INTEGER) > 0 GROUP BY n_name",
]


@pytest.mark.parametrize("sql", FREE)
def test_what_no_private_row_takes_part_in_is_exact_and_free(sql: str) -> None:
    connection = _copy()
    connection.execute("CREATE VIEW shown_nation AS SELECT * FROM nation")
    ledger = sqlrs.MemoryLedger()
    with sqlrs.connect(connection, public=["region", "nation"], ledger=ledger) as fresh:
        answer = fresh.query(sql, 1)
    assert (answer.epsilon, answer.mechanism) == (Decimal(0), "exact")
    assert ledger.history() == ()


def test_rows_that_count_twice_are_whole_numbers(database: sqlrs.Database) -> None:
    sql = (
        "SELECT count(*) FROM (SELECT c_id FROM customer UNION ALL SELECT c_id FROM customer) AS u"
    )
    assert database.count(sql, 1000).value == 80
    ((found,),) = database.query(sql, 1000)
    assert found == 80 and type(found) is int


@pytest.mark.parametrize("kind", ["TIMESTAMP_S", "TIMESTAMP_NS", "TIMETZ", "ENUM ('a', 'b')"])
def test_an_outer_join_leaves_columns_of_any_type_empty(kind: str) -> None:
    connection = _copy()
    connection.execute(f"CREATE TABLE badge (b_cust INTEGER NOT NULL, b_made {kind})")
    connection.execute("INSERT INTO badge VALUES (1, NULL), (1, NULL), (99, NULL)")
    sql = "SELECT count(*) FROM customer LEFT JOIN badge ON b_cust = c_id WHERE b_made IS NULL"
    with sqlrs.connect(connection) as fresh:
        assert fresh.count(sql, 1000).value == 41


@pytest.mark.parametrize("kind", ["mood", '"char"', "money", "macaddr", "xml"])
def test_so_it_does_in_postgres(postgres_server: PostgresServer, kind: str) -> None:
    with postgres_server.database() as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("CREATE TYPE mood AS ENUM ('a', 'b')")
            owner.execute("CREATE TABLE a (id int PRIMARY KEY)")
            owner.execute(f"CREATE TABLE b (id int NOT NULL, made {kind})")
            owner.execute("INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1), (1), (3)")
        with sqlrs.connect(url) as database:
            sql = "SELECT count(*) FROM a LEFT JOIN b ON a.id = b.id"
            assert database.count(sql, 1000).value == 3


def test_only_the_columns_that_are_named_are_read_of_public_tables() -> None:
    connection = _copy()
    connection.execute("CREATE TABLE place (id INTEGER, name VARCHAR, spot STRUCT(x INTEGER))")
    connection.execute("INSERT INTO place VALUES (1, 'here', {'x': 1})")
    with sqlrs.connect(connection, public=["nation", "place"]) as fresh:
        per = "(SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) AS q"
        sql = f"SELECT Name, n FROM {per} JOIN place ON c_nation = place.id"
        assert fresh.query(sql, 1000).rows == (("here", 13),)
        sql = f"SELECT p.b, q.n FROM {per} JOIN nation AS p(a, b, c) ON c_nation = p.a ORDER BY 1"
        assert fresh.query(sql, 1000).rows == (("DE", 14), ("FR", 13), ("JP", 13))
        # Whole rows have all columns, or there is no answer.
        for sql in ("SELECT * FROM place", "SELECT place FROM place", "SELECT spot FROM place"):
            with pytest.raises(QueryRefused):
                fresh.query(sql, 1)


def test_months_are_shown_by_the_clock_of_the_session(database: sqlrs.Database) -> None:
    sql = (
        "SELECT date_trunc('month', o_date) AS m, count(*) FROM orders "
        "WHERE o_date BETWEEN DATE '2024-01-01' AND DATE '2024-03-31' GROUP BY 1 ORDER BY 1"
    )
    # PostgreSQL's months of a date have a time zone, which released rows do not keep.
    expected = [(month.replace(tzinfo=None), n) for month, n in plain(database, sql)]  # type: ignore[attr-defined]
    assert list(database.query(sql, 1000)) == expected


def test_too_many_counts_in_one_statement_are_refused_early(database: sqlrs.Database) -> None:
    joined = "customer LEFT JOIN orders ON c_id = o_cust LEFT JOIN nation ON c_nation = n_id"
    asked = ", ".join(f"count(*) FILTER (WHERE c_id > {i})" for i in range(40))
    with pytest.raises(QueryRefused) as refused:
        database.query(f"SELECT {asked} FROM {joined}", 1)
    assert refused.value.code == "too_complex"


def test_a_domain_of_private_rows_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should the search for domains ever name a private table, the statement is refused."""
    select = sqlglot.parse_one("SELECT DISTINCT c_segment AS k0 FROM main.customer")
    leaking = (KeyDomain((0,), select, "a mistake"),)
    monkeypatch.setattr(statement, "find_domains", lambda *_: leaking)
    ledger = sqlrs.MemoryLedger()
    with (
        sqlrs.connect(_copy(), public=["nation"], ledger=ledger) as database,
        pytest.raises(QueryRefused) as refused,
    ):
        database.query("SELECT c_segment, count(*) FROM customer GROUP BY 1", 1)
    assert refused.value.code == "unknown_domain"
    assert ledger.history() == ()
