"""What goes wrong first, told in a line: missing packages, a used port, a database that is down."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from pathlib import Path

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.errors import UsageError
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.logs import JsonFormatter
from tests.proxy.double import DoubleBackend
from tests.proxy.harness import RunningProxy, running_proxy
from tests.proxy.mortal_server import MortalServer

ROOT = Path(__file__).parents[2]
WITHOUT = (
    "import sys\n"
    "for name in {missing!r}: sys.modules[name] = None\n"
    "from sqlrs.cli.main import main\n"
    "main()\n"
)


def _serve(folder: Path, *arguments: str, missing: tuple[str, ...] = ()) -> tuple[int, str]:
    (folder / "graph.txt").write_text("1\t2\n2\t3\n3\t1\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=missing), "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    return done.returncode, done.stderr


def _embedded(*more: str) -> tuple[str, ...]:
    return ("--table", "edge=graph.txt", "--user", "alice", *more)


def test_without_its_extra_the_proxy_says_what_to_install(tmp_path: Path) -> None:
    code, told = _serve(tmp_path, *_embedded("--port", "0"), missing=("cryptography",))
    assert code == 2
    assert told == (
        "sqlrs: usage: TLS needs the package cryptography, which is not installed\n"
        "hint: pip install 'sqlrs[proxy]'\n"
    )


@pytest.mark.parametrize("place", ["db", "ledger"])
def test_without_psycopg_postgresql_says_what_to_install(tmp_path: Path, place: str) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    config = tmp_path / "sqlrs.toml"
    tables = "" if place == "db" else '[data.tables]\nedge = "graph.txt"\n'
    ledger = url if place == "ledger" else f"sqlite:///{tmp_path}/budget.db"
    db = f'db = "{url}"\n' if place == "db" else ""
    config.write_text(f'[data]\nledger = "{ledger}"\n{db}{tables}')
    code, told = _serve(tmp_path, "--config", str(config), missing=("psycopg",))
    assert code == 2
    assert "psycopg" in told
    assert "pip install 'sqlrs[postgres]'" in told
    assert "Traceback" not in told


def test_a_used_port_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, told = _serve(tmp_path, *_embedded("--port", str(port)))
    assert code == 2
    last = told.strip().splitlines()[-2:]
    assert last[0] == f"sqlrs: usage: cannot listen on 127.0.0.1:{port}: Address already in use"
    assert last[1].startswith("hint: ")
    assert "Traceback" not in told


def test_a_used_status_port_and_an_address_of_nobody_are_told(tmp_path: Path) -> None:
    backend = DoubleBackend()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(UsageError, match=f"{port}: Address already in use"),
            running_proxy(backend, tmp_path, status_port=port),
        ):
            pass
    with (
        pytest.raises(UsageError, match=r"cannot listen on 203\.0\.113\.7"),
        running_proxy(backend, tmp_path, listen="203.0.113.7"),
    ):
        pass


def _logged(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    return [line for line in lines if line["event"] == event]


def test_a_failed_reload_has_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sqlrs.proxy")
    with running_proxy(DoubleBackend(), tmp_path) as proxy:
        users = tmp_path / "users.toml"
        kept = users.read_text()
        users.write_text("[users]\nalice = 'secret text'\n")
        proxy.call(proxy.proxy.reload)
        users.write_text(kept)
        proxy.call(proxy.proxy.reload)
    (line,) = _logged(caplog, "reload_failed")
    assert line["reason"] == f"{users}: user alice has no SCRAM-SHA-256 verifier"
    assert "secret text" not in str(line)
    assert len(_logged(caplog, "reloaded")) == 1


def _ask(proxy: RunningProxy, sql: str) -> psycopg.Error | None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        try:
            connection.execute(sql)
        except psycopg.Error as problem:
            return problem
    return None


@pytest.mark.parametrize(
    "sql",
    ["SELECT count(*) FROM edge WHERE src = {}", "SELECT name FROM region WHERE id = {}"],
    ids=["count", "reading"],
)
def test_a_database_that_is_down_is_told_to_the_operator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sql: str
) -> None:
    caplog.set_level(logging.INFO, "sqlrs.proxy")
    ledger = StoreLedger(f"sqlite:///{tmp_path}/budget.db")
    ledger.grant(epsilon=10, analyst="alice")
    ledger.grant(epsilon=10, dataset="data")
    with MortalServer() as server, server.database() as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("CREATE TABLE edge (src bigint PRIMARY KEY)")
            owner.execute("CREATE TABLE region (id int PRIMARY KEY, name text)")
        with (
            sqlrs.connect(url, public=["region"], ledger=ledger) as database,
            running_proxy(LibraryBackend(database), tmp_path) as proxy,
        ):
            value, name = proxy.proxy.service.metrics.value, "sqlrs_backend_failures_total"
            assert _ask(proxy, sql.format(1)) is None
            assert value(name) == 0
            server.kill()
            problem = _ask(proxy, sql.format(2))
            assert problem is not None
            assert problem.sqlstate == "58000"
            # Where the server is and who asks it is nothing for analysts.
            assert "127.0.0.1" not in str(problem) and "connection to" not in str(problem)
            assert value(name) == 1
            (line,) = _logged(caplog, "backend_failed")
            assert line["analyst"] == "alice"
            assert line["level"] == "error"
            server.start_again()
            assert _ask(proxy, sql.format(3)) is None


def test_a_database_with_installed_functions_is_served(tmp_path: Path) -> None:
    """Their schema has the name of the proxy's own; its tables are nothing for analysts."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE edge AS SELECT 1 AS src")
    connection.execute("CREATE SCHEMA SQLRS; CREATE TABLE SQLRS.history AS SELECT 'private' AS sql")
    connection.execute("CREATE VIEW SQLRS.balances AS SELECT sql FROM SQLRS.history")
    with (
        sqlrs.connect(connection) as database,
        running_proxy(LibraryBackend(database), tmp_path) as proxy,
        psycopg.connect(proxy.dsn(), autocommit=True) as analyst,
    ):
        assert analyst.execute("SELECT * FROM sqlrs.history").fetchall() == []
        analyst.execute("SELECT count(*) FROM edge")
        shown = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sqlrs'"
        assert set(analyst.execute(shown)) == {("budget",), ("history",)}
