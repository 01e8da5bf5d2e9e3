"""Everything an analyst might send to get a raw number: refused, nothing charged, nothing read."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg
import pytest
from psycopg.pq import ExecStatus

from sqlrs.proxy.protocol.replies import read_data_row
from sqlrs.proxy.shadow.requests import once
from tests.proxy.double import DoubleBackend
from tests.proxy.harness import PASSWORD, RunningProxy, running_proxy

COUNT = "SELECT count(*) FROM edge"


@pytest.fixture(scope="module")
def backend() -> DoubleBackend:
    return DoubleBackend(Decimal(5))


@pytest.fixture(scope="module")
def proxy(
    backend: DoubleBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningProxy]:
    with running_proxy(backend, tmp_path_factory.mktemp("security")) as running:
        yield running


@pytest.fixture(scope="module")
def shared(proxy: RunningProxy) -> Iterator[psycopg.Connection]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


@contextmanager
def nothing_charged(backend: DoubleBackend) -> Iterator[None]:
    spent, rows = dict(backend.spent), {k: list(v) for k, v in backend.rows.items()}
    yield
    assert backend.spent == spent
    assert backend.rows == rows


ATTACKS = [
    # The tables themselves
    ("SELECT * FROM edge", "0A000"),
    ("TABLE edge", "0A000"),
    ("SELECT src FROM edge LIMIT 1", "0A000"),
    ("SELECT sum(src) FROM edge", "0A000"),
    ("SELECT max(src), count(*) FROM edge", "0A000"),
    ("SELECT count(*), count(*) FROM edge", "0A000"),
    ("SELECT count(*) + 0 FROM edge", "0A000"),
    ("SELECT count(*)::text FROM edge", "0A000"),
    ("SELECT (SELECT count(*) FROM edge)", "0A000"),
    ("SELECT EXISTS (SELECT 1 FROM edge)", "0A000"),
    ("SELECT count(*) FROM edge GROUP BY src", "0A000"),
    ("SELECT count(*) FROM edge HAVING max(src) > 5", "0A000"),
    ("SELECT count(*) OVER () FROM edge", "0A000"),
    ("SELECT array_agg(src) FROM edge", "0A000"),
    ("SELECT json_agg(edge) FROM edge", "0A000"),
    ("SELECT count(*) FROM edge UNION ALL SELECT 1", "0A000"),
    ("VALUES ((SELECT count(*) FROM edge))", "0A000"),
    # Common table expressions
    ("WITH x AS (SELECT * FROM edge) SELECT * FROM x", "0A000"),
    ("WITH pg_class AS (SELECT * FROM edge) SELECT * FROM pg_class", "0A000"),
    ("WITH RECURSIVE x AS (SELECT src FROM edge UNION SELECT 1) SELECT * FROM x", "0A000"),
    ("WITH x AS (DELETE FROM edge RETURNING *) SELECT count(*) FROM x", "42501"),
    ("WITH x AS (INSERT INTO edge VALUES (1, 2) RETURNING *) SELECT count(*) FROM x", "42501"),
    # Mixed with catalogs
    ("SELECT relname, (SELECT count(*) FROM edge) FROM pg_class", "0A000"),
    ("SELECT * FROM pg_class WHERE EXISTS (SELECT 1 FROM edge)", "0A000"),
    ("SELECT 1 / (SELECT count(*) FROM edge)", "0A000"),
    ("SELECT set_config('jit', (SELECT count(*)::text FROM edge), false)", "0A000"),
    # COPY, cursors, EXPLAIN, prepared statements in SQL
    ("COPY edge TO STDOUT", "0A000"),
    ("COPY (SELECT count(*) FROM edge) TO STDOUT", "0A000"),
    ("COPY edge TO PROGRAM 'cat'", "0A000"),
    ("COPY edge FROM STDIN", "0A000"),
    ("DECLARE c CURSOR FOR SELECT * FROM edge", "0A000"),
    ("DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FROM edge", "0A000"),
    ("FETCH ALL FROM c", "0A000"),
    ("EXPLAIN SELECT src FROM edge", "0A000"),
    ("EXPLAIN ANALYZE SELECT count(*) FROM edge", "0A000"),
    ("EXPLAIN (ANALYZE, FORMAT json) SELECT count(*) FROM edge", "0A000"),
    ("PREPARE p AS SELECT count(*) FROM edge", "0A000"),
    ("EXECUTE p", "0A000"),
    # Statistics and activity
    ("SELECT * FROM pg_stats WHERE tablename = 'edge'", "42501"),
    ("SELECT * FROM pg_statistic", "42501"),
    ("SELECT n_live_tup FROM pg_stat_user_tables", "42501"),
    ("SELECT query FROM pg_stat_activity", "42501"),
    ("SELECT * FROM pg_locks", "42501"),
    ("ANALYZE edge", "42501"),
    ("VACUUM edge", "42501"),
    # Functions
    ("SELECT query_to_xml('SELECT count(*) FROM edge', true, true, '')", "42501"),
    ("SELECT table_to_xml('edge', true, true, '')", "42501"),
    ("SELECT cursor_to_xml('c', 1, true, true, '')", "42501"),
    ("SELECT ts_stat('SELECT src FROM edge')", "42501"),
    ("SELECT pg_read_file('/etc/passwd')", "42501"),
    ("SELECT pg_sleep(1000)", "42501"),
    ("SELECT count(*) FROM edge WHERE pg_sleep(1) IS NULL", "0A000"),
    ("SELECT pg_terminate_backend(pg_backend_pid())", "42501"),
    ("SELECT dblink('', 'SELECT 1')", "42501"),
    ("DO $$ BEGIN PERFORM count(*) FROM edge; END $$", "42501"),
    ("CALL f()", "42501"),
    # Large objects, notifications
    ("SELECT lo_from_bytea(0, 'x')", "42501"),
    ("SELECT lo_import('/etc/passwd')", "42501"),
    ("SELECT lo_export(1, '/tmp/x')", "42501"),
    ("SELECT * FROM pg_largeobject", "42501"),
    ("LISTEN x", "0A000"),
    ("NOTIFY x", "0A000"),
    ("SELECT pg_notify('x', 'y')", "42501"),
    # Writing and owning
    ("CREATE TEMP TABLE x AS SELECT count(*) FROM edge", "42501"),
    ("CREATE VIEW v AS SELECT * FROM edge", "42501"),
    ("CREATE RULE r AS ON SELECT TO edge DO INSTEAD SELECT 1", "42501"),
    ("SELECT count(*) INTO x FROM edge", "42501"),
    ("INSERT INTO edge VALUES (1, 2)", "42501"),
    ("UPDATE edge SET src = 1", "42501"),
    ("DELETE FROM edge", "42501"),
    ("TRUNCATE edge", "42501"),
    ("LOCK edge", "42501"),
    ("GRANT ALL ON edge TO alice", "42501"),
    ("ALTER ROLE alice SUPERUSER", "42501"),
    ("SET ROLE sqlrs_owner", "42501"),
    ("SET SESSION AUTHORIZATION sqlrs_owner", "42501"),
    ("RESET SESSION AUTHORIZATION", "42501"),
    ("SELECT set_config('role', 'sqlrs_owner', false)", "42501"),
    ("SET session_preload_libraries = 'x'", "42501"),
    ("LOAD 'x'", "42501"),
    # Other readings of the text
    ("SET standard_conforming_strings = off", "0A000"),
    ("SET client_encoding = 'SJIS'", "0A000"),
    ("SELECT 1; SELECT count(*) FROM edge", "0A000"),
    ("SELECT count(*) FROM edge; SELECT count(*) FROM edge", "0A000"),
    ("BEGIN; SELECT count(*) FROM edge; COMMIT", "0A000"),
    ("SET sqlrs.epsilon = 1; SELECT count(*) FROM edge", "0A000"),
    # Somebody else's
    ("SELECT * FROM sqlrs.ledger", "42P01"),
    ("SET sqlrs.budget = '1000'", "42501"),
    ("SET sqlrs.history = '[]'", "42501"),
    ("SELECT set_config('sqlrs.budget', '1000', false)", "42501"),
    ("SET sqlrs.epsilon = 1000", "22023"),
]


@pytest.mark.parametrize(("sql", "sqlstate"), ATTACKS)
def test_refused_in_a_simple_query(
    shared: psycopg.Connection, backend: DoubleBackend, sql: str, sqlstate: str
) -> None:
    with nothing_charged(backend):
        result = shared.pgconn.exec_(sql.encode())
    assert result.status == ExecStatus.FATAL_ERROR
    assert result.error_field(ord("C")) == sqlstate.encode()
    assert result.ntuples == 0
    assert shared.pgconn.exec_(b"SELECT 1").ntuples == 1


@pytest.mark.parametrize(
    ("sql", "sqlstate"), [attack for attack in ATTACKS if "; " not in attack[0]]
)
def test_refused_in_an_extended_query(
    shared: psycopg.Connection, backend: DoubleBackend, sql: str, sqlstate: str
) -> None:
    with nothing_charged(backend):
        result = shared.pgconn.exec_params(sql.encode(), None)
    assert result.status == ExecStatus.FATAL_ERROR
    assert result.error_field(ord("C")) == sqlstate.encode()
    assert shared.pgconn.exec_(b"SELECT 1").ntuples == 1


def test_the_list_of_attacks_would_notice_an_answer(
    shared: psycopg.Connection, backend: DoubleBackend
) -> None:
    """The negative control: the one supported form is answered and charged."""
    with pytest.raises(AssertionError), nothing_charged(backend):
        assert shared.pgconn.exec_(COUNT.encode()).ntuples == 1


def test_describe_and_prepare_cost_nothing(proxy: RunningProxy, backend: DoubleBackend) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def describe() -> None:
        context = ssl.create_default_context(cafile=str(proxy.certificate))
        connection = await asyncpg.connect(
            host="localhost",
            port=proxy.port,
            user="alice",
            password=PASSWORD,
            database="sqlrs",
            ssl=context,
        )
        statement = await connection.prepare("SELECT count(*) AS n FROM edge WHERE src = $1")
        assert [(a.name, a.type.name) for a in statement.get_attributes()] == [("n", "int8")]
        assert [p.name for p in statement.get_parameters()] == ["int8"]
        await connection.close()

    with nothing_charged(backend):
        asyncio.run(describe())


def test_a_prepared_statement_means_the_same_after_any_set(
    proxy: RunningProxy, backend: DoubleBackend
) -> None:
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as connection:
        connection.pgconn.prepare(b"p", COUNT.encode())
        connection.execute("SET search_path = pg_catalog")
        connection.execute("SET sqlrs.epsilon = 0.25")
        first = connection.pgconn.exec_prepared(b"p", None)
        assert first.get_value(0, 0) is not None
        assert backend.spent["bob"] == Decimal("0.25")
        # Setting it by function passes the check of SET; what counts is the check at the charge.
        connection.execute("SELECT set_config('sqlrs.epsilon', '1000', false)")
        with nothing_charged(backend):
            result = connection.pgconn.exec_prepared(b"p", None)
        assert result.error_field(ord("C")) == b"22023"


def test_an_exhausted_budget_ends_the_answers_and_nothing_else(
    proxy: RunningProxy, backend: DoubleBackend
) -> None:
    with psycopg.connect(proxy.dsn("carol"), autocommit=True) as connection:
        connection.execute("SET sqlrs.epsilon = 2")
        for source in range(2):
            connection.execute(f"{COUNT} WHERE src = {source}")
        with nothing_charged(backend), pytest.raises(psycopg.Error) as caught:
            connection.execute(f"{COUNT} WHERE src = 2")
        assert caught.value.sqlstate == "53400"
        assert connection.execute(f"{COUNT} WHERE src = 1").fetchone() is not None
        assert connection.execute("SHOW sqlrs.budget").fetchone() == ("1",)
        connection.execute("SET sqlrs.epsilon = 1")
        assert connection.execute(f"{COUNT} WHERE src = 2").fetchone() is not None


def test_analysts_see_their_own_history_only(proxy: RunningProxy) -> None:
    with psycopg.connect(proxy.dsn("alice"), autocommit=True) as alice:
        alice.execute(f"{COUNT} WHERE src = 7 AND dst = 8")
        own = alice.execute("SELECT sql FROM sqlrs.history").fetchall()
        assert any("src = 7" in sql for (sql,) in own)
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob:
        others = bob.execute("SELECT sql FROM sqlrs.history").fetchall()
        assert not any("src = 7" in sql for (sql,) in others)
        assert bob.execute("SELECT analyst FROM sqlrs.budget").fetchall() == [("bob",)]


def test_errors_after_the_charge_are_one_error(proxy: RunningProxy, backend: DoubleBackend) -> None:
    seen = set()
    with psycopg.connect(proxy.dsn("alice"), autocommit=True) as connection:
        connection.execute("SET sqlrs.epsilon = 0.01")
        for number, problem in enumerate(
            [RuntimeError("count was 112"), ZeroDivisionError(), MemoryError(), KeyError("112")]
        ):
            backend.breaks = problem
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(f"{COUNT} WHERE src = {100 + number}")
            seen.add((caught.value.sqlstate, str(caught.value)))
    backend.breaks = None
    assert len(seen) == 1
    assert "112" not in str(seen)


def test_the_shadow_holds_no_row_and_gives_no_rights(proxy: RunningProxy) -> None:
    """Even past the whitelist: what an analyst's own role can do in the shadow."""

    async def probe() -> list[str]:
        shadow = await proxy.shadow.connect("alice", {})
        states = []
        for sql in (
            "CREATE TABLE x (a int)",
            "CREATE TEMP TABLE x (a int)",
            "INSERT INTO edge VALUES (1, 2)",
            "SELECT lo_creat(1)",
            "SELECT pg_read_file('postgresql.conf')",
            "SELECT pg_sleep(0)",
            "SELECT * FROM pg_stat_activity",
            "SELECT pg_notify('a', 'b')",
            "SET ROLE sqlrs_owner",
            "COPY edge TO PROGRAM 'id'",
        ):
            try:
                await shadow.run(sql)
                states.append(sql)
            except Exception as problem:
                states.append(str(getattr(problem, "sqlstate", problem)))
        frames = await shadow.exchange(*once("probe", "SELECT count(*) FROM edge"))
        states += [str(read_data_row(frame.body)) for frame in frames if frame.kind == b"D"]
        shadow.abort()
        return states

    assert proxy.call(probe) == ["42501"] * 10 + ["(b'0',)"]
