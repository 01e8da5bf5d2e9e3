"""What an analyst can make of the shadow: no memory without bound, and nobody else's name."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from sqlrs.proxy.backend import HistoryRow
from sqlrs.proxy.config import Limits
from tests.proxy.double import DoubleBackend
from tests.proxy.harness import RunningProxy, running_proxy

LIMITS = Limits(history_rows=1000)
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def backend() -> DoubleBackend:
    return DoubleBackend(Decimal(100))


@pytest.fixture(scope="module")
def proxy(
    backend: DoubleBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningProxy]:
    with running_proxy(backend, tmp_path_factory.mktemp("bounds"), limits=LIMITS) as running:
        yield running


def _private_bytes(process: int) -> int:
    """What the process has for itself, shared memory and program left out."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError


HUNGRY = [
    "SELECT array_length(array_agg(g), 1) FROM generate_series(1, 300000000) g",
    "SELECT length(string_agg(a.proname::text || b.proname::text, ','))"
    " FROM pg_proc a, pg_proc b, pg_proc c",
    "SELECT json_agg(a) FROM pg_proc a, pg_proc b",
    "SELECT count(DISTINCT (a.oid, b.oid)) FROM pg_proc a, pg_proc b",
]


@pytest.mark.parametrize("sql", HUNGRY)
def test_a_process_of_the_shadow_has_so_much_memory(proxy: RunningProxy, sql: str) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        peak, ended = 0, threading.Event()

        def watch() -> None:
            nonlocal peak
            while not ended.is_set():
                peak = max(peak, _private_bytes(row[0]))
                time.sleep(0.01)

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(sql)
        finally:
            ended.set()
            watching.join(10)
        # Memory, or the files that a sort spills to: each has its limit.
        assert caught.value.sqlstate in ("53200", "53400", "54000")
        assert peak <= 80 * MEGABYTE
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_row_that_is_too_long_ends_its_own_connection_alone(proxy: RunningProxy) -> None:
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as other:
        with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
            row = "SELECT string_agg(proname::text, ',') FROM pg_proc, generate_series(1, {})"
            assert connection.execute(row.format(10)).fetchone() is not None
            with pytest.raises(psycopg.OperationalError, match="too long"):
                connection.execute(row.format(200))
        assert other.execute("SELECT 1").fetchone() == (1,)


def test_a_long_history_fits(proxy: RunningProxy, backend: DoubleBackend) -> None:
    at = datetime.now(UTC)
    backend.rows["carol"] = [
        HistoryRow(at, f"SELECT '{'ü' * 60_000}'", Decimal(1), "released", n) for n in range(5000)
    ]
    try:
        with psycopg.connect(proxy.dsn("carol"), autocommit=True) as connection:
            found = connection.execute(
                "SELECT count(*), max(length(sql)) FROM sqlrs.history"
            ).fetchone()
            assert found == (1000, 2000)
            assert len(connection.execute("SELECT * FROM sqlrs.history").fetchall()) == 1000
    finally:
        del backend.rows["carol"]


NAMES = [
    "SELECT rolname FROM pg_roles",
    "SELECT rolname FROM pg_catalog.pg_roles ORDER BY 1",
    "SELECT usename FROM pg_user",
    "SELECT groname FROM pg_group",
    "SELECT grantee FROM information_schema.role_table_grants",
    "SELECT * FROM information_schema.applicable_roles",
    "SELECT * FROM information_schema.enabled_roles",
    "SELECT * FROM information_schema.administrable_role_authorizations",
    "SELECT * FROM pg_shdescription",
    "SELECT * FROM pg_db_role_setting",
    "SELECT relacl::text FROM pg_class WHERE relacl IS NOT NULL",
    "SELECT pg_get_userbyid(o.oid) FROM (SELECT generate_series(10, 20000)::oid AS oid) o"
    " WHERE pg_get_userbyid(o.oid) NOT LIKE 'unknown%'",
    "SELECT acldefault('r', o.oid)::text FROM (SELECT generate_series(16000, 17000)::oid AS oid) o",
    "SELECT (oid::regrole)::text FROM pg_roles",
    "SELECT current_user, session_user, current_role",
]


@pytest.mark.parametrize("sql", NAMES)
def test_nobody_sees_another_analysts_name(proxy: RunningProxy, sql: str) -> None:
    with (
        psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob,
        psycopg.connect(proxy.dsn("alice"), autocommit=True) as alice,
    ):
        bob.execute("SELECT 1")
        rows = alice.execute(sql).fetchall()
        assert "bob" not in str(rows)
        assert "carol" not in str(rows)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT has_table_privilege({}, 'edge', 'SELECT')",
        "SELECT pg_has_role({}, 'USAGE')",
        "SELECT to_regrole({})",
        "SELECT {}::regrole",
        "SELECT ({} || '=r/' || {})::aclitem",
    ],
)
def test_a_name_that_exists_is_answered_like_one_that_does_not(
    proxy: RunningProxy, sql: str
) -> None:
    told = []
    with (
        psycopg.connect(proxy.dsn("bob"), autocommit=True),
        psycopg.connect(proxy.dsn("alice"), autocommit=True) as alice,
    ):
        for name in ("bob", "nobody"):
            try:
                told.append(str(alice.execute(sql.replace("{}", f"'{name}'")).fetchall()))
            except psycopg.Error as problem:
                told.append(str(problem).replace(name, "…"))
    assert told[0] == told[1]


def test_the_own_name_is_in_the_budget(proxy: RunningProxy) -> None:
    for user in ("alice", "bob"):
        with psycopg.connect(proxy.dsn(user), autocommit=True) as connection:
            assert connection.execute("SELECT analyst FROM sqlrs.budget").fetchone() == (user,)
            for attempt in (
                "SET sqlrs.analyst = 'carol'",
                "SELECT set_config('sqlrs.analyst', 'carol', false)",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(attempt)
            connection.execute("DISCARD ALL")
            assert connection.execute("SELECT analyst FROM sqlrs.budget").fetchone() == (user,)


def test_psql_lists_no_analysts(proxy: RunningProxy) -> None:
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    with psycopg.connect(proxy.dsn("bob")):
        done = subprocess.run(
            [program, "-X", "-A", "-t", "-d", proxy.dsn(), "-c", r"\du", "-c", r"\dp", "-c", r"\l"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stderr == ""
    assert "analyst" in done.stdout
    assert "bob" not in done.stdout
