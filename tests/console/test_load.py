"""Fifty browsers beside fifty PostgreSQL clients, and a server that is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from statistics import quantiles

import httpx
import psycopg
import pytest

from sqlrs.console.web_demo import demo_data
from sqlrs.graphs.patterns import pattern_sql
from sqlrs.ledger.base import RELEASED, RESERVED
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.users import add_user
from tests.console.harness import PASSWORD, Visitor

SECONDS = float(os.environ.get("SQLRS_LOAD_SECONDS", "60"))
EACH = 50
USERS = tuple(f"user{n}" for n in range(10))
QUERY = "SELECT count(*) FROM patient WHERE born < {} AND id > {}"


@contextmanager
def both(folder: Path) -> Iterator[tuple[str, str, StoreLedger]]:
    """``sqlrs serve`` with a console, in one process of its own; budgets for all users."""
    demo_data(folder).close()
    ledger = StoreLedger(f"sqlite:///{folder}/budget.db")
    for user in USERS:
        ledger.grant(analyst=user, epsilon=100_000)
        add_user(folder / "users.toml", user, PASSWORD)
    ledger.grant(dataset="data", epsilon=1_000_000)
    config = folder / "sqlrs.toml"
    config.write_text(
        f'[data]\nledger = "sqlite:///{folder}/budget.db"\n[data.tables]\n'
        'patient = "patient.csv"\n[proxy]\nport = 0\n[console]\nport = 0\ntls = "off"\n'
    )
    with _process(config, "serve", 2) as (_, lines):
        said = " ".join(lines)
        port = said.partition("listening on 127.0.0.1:")[2].partition(",")[0]
        address = said.partition("console on ")[2].split()[0].rstrip("/")
        dsn = f"host=127.0.0.1 port={port} dbname=sqlrs sslmode=require password='{PASSWORD}'"
        yield address, dsn, ledger


@pytest.mark.slow
def test_browsers_beside_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o700)
    times: dict[str, list[float]] = {"pages": [], "runs": [], "statements": []}
    told: list[tuple[str, Decimal]] = []
    problems: list[str] = []
    stop = threading.Event()

    def browser(address: str, number: int) -> None:
        user = USERS[number % len(USERS)]
        visitor = Visitor(httpx.Client(base_url=address, timeout=120))
        visitor.client.post("/login", data={"name": user, "password": PASSWORD})
        token, turn = visitor.token, 0
        while not stop.is_set():
            turn += 1
            sql = QUERY.format(1930 + turn % 90, number * 10_000 + turn)
            fields = {"csrf": token, "sql": sql, "epsilon": "0.5", "price": "0.5"}
            for path, kind in (("/check", "pages"), ("/run", "runs"), ("/history", "pages")):
                began = time.monotonic()
                send = visitor.client.post if kind == "runs" or path == "/check" else None
                answer = send(path, data=fields) if send else visitor.get(path)
                times[kind].append(time.monotonic() - began)
                if answer.status_code != 200:
                    problems.append(f"{path} {answer.status_code}")
                elif path == "/run" and "was charged" in answer.text:
                    told.append((user, Decimal("0.5")))

    def client(dsn: str, number: int) -> None:
        user, turn = USERS[number % len(USERS)], 0
        with psycopg.connect(f"{dsn} user={user}", autocommit=True) as connection:
            while not stop.is_set():
                turn += 1
                began = time.monotonic()
                sql = QUERY.format(1930 + turn % 90, 1_000_000 + number * 10_000 + turn)
                connection.execute(sql.encode()).fetchone()
                times["statements"].append(time.monotonic() - began)
                told.append((user, Decimal("0.5")))

    def guarded(work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except Exception as problem:
            problems.append(f"{type(problem).__name__}: {problem}")

    with both(tmp_path) as (address, dsn, ledger):
        threads = [
            threading.Thread(target=guarded, args=(browser, address, n)) for n in range(EACH)
        ]
        threads += [threading.Thread(target=guarded, args=(client, dsn, n)) for n in range(EACH)]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        stop.set()
        for thread in threads:
            thread.join(120)
        lines = ledger.history()
        for budget in ledger.show():
            kind = "dataset" if budget.kind == "dataset" else "analyst"
            charged = sum(
                line.charge.epsilon for line in lines if getattr(line.charge, kind) == budget.name
            )
            assert charged == budget.spent <= budget.cap, budget
        assert len(told) == sum(line.outcome == RELEASED for line in lines)
    assert problems == []
    for kind, found in times.items():
        assert len(found) > EACH, kind
        cuts = quantiles(found, n=100)
        with capsys.disabled():
            print(f"\n{kind}: {len(found)}, median {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s")


@pytest.mark.slow
def test_a_server_that_is_killed_in_a_run(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    demo_data(tmp_path).close()
    ledger = StoreLedger(f"sqlite:///{tmp_path}/budget.db")
    ledger.grant(dataset="data", epsilon=10)
    ledger.grant(analyst="ada", epsilon=10, renew="never")
    add_user(tmp_path / "users.toml", "ada", PASSWORD)
    config = tmp_path / "sqlrs.toml"
    config.write_text(
        f'[data]\nledger = "sqlite:///{tmp_path}/budget.db"\n[data.tables]\nedge = "edge.txt"\n'
        '[console]\nport = 0\ntls = "off"\n'
    )
    sql = pattern_sql("cycle4")
    with _process(config) as (process, (said,)):
        address = said.removeprefix("console on ")
        client = httpx.Client(base_url=address, timeout=60)
        client.post("/login", data={"name": "ada", "password": PASSWORD})
        token = Visitor(client).token
        fields = {"csrf": token, "sql": sql, "epsilon": "0.5", "price": "0.5"}
        answers: list[httpx.Response] = []

        def run() -> None:
            with suppress(httpx.HTTPError):
                answers.append(client.post("/run", data=fields))

        thread = threading.Thread(target=run)
        thread.start()
        while not ledger.history():
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        thread.join(60)
        assert answers == []
    (line,) = ledger.history()
    assert line.outcome == RESERVED
    assert ledger.budget(analyst="ada").spent == Decimal("0.5")  # spent ≥ answered
    with _process(config) as (_, (said,)):
        address = said.removeprefix("console on ")
        client = httpx.Client(base_url=address, timeout=60)
        client.post("/login", data={"name": "ada", "password": PASSWORD})
        page = client.get("/history").text
        assert "the server stopped before there was an answer" in page
        assert "9.5" in client.get("/budget").text


@contextmanager
def _process(
    config: Path, name: str = "console", lines: int = 1
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    command = [sys.executable, "-m", "sqlrs", name, "--config", str(config)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(lines)]
        try:
            yield process, said
        finally:
            process.kill()
