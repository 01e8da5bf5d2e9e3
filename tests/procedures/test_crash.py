"""Clients and server processes killed in the middle of releases: no answer is ever free."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from tests.procedures.conftest import EDGES
from tests.procedures.desk import Desk
from tests.support.postgres_server import PostgresServer

ROOT = Path(__file__).parents[2]
SEED = 20261116
# Shows each answer by a notice, before its transaction can end; prints it before anything else.
CLIENT = """
import sys
import psycopg
connection = psycopg.connect(sys.argv[1], autocommit=True)
connection.add_notice_handler(lambda notice: print(notice.message_primary, flush=True))
print("ready", connection.info.backend_pid, flush=True)
while True:
    connection.execute(
        "DO $$ DECLARE a numeric; BEGIN SELECT answer INTO a FROM sqlrs.asked(0.001); "
        "RAISE NOTICE 'answer %', a; PERFORM pg_sleep(random() * 0.004); "
        "IF random() < 0.3 THEN RAISE EXCEPTION 'undo'; END IF; "
        "EXCEPTION WHEN raise_exception THEN NULL; END $$"
    )
"""


@pytest.fixture
def crashing() -> Iterator[Desk]:
    """A server that may crash: nobody else uses it. Its log writer is as lazy as by default."""
    with PostgresServer() as server, server.database() as url:
        desk = Desk(server, url)
        desk.edges(EDGES)
        desk.install(repeats=False, budget="1000000", dataset_budget="1000000")
        desk.run("ALTER SYSTEM SET wal_writer_delay = '20ms'")
        desk.run("SELECT pg_reload_conf()")
        yield desk


def answers_before_the_kill(desk: Desk, victim: str, draw: random.Random) -> int:
    """Let a client ask until it, or its server process, is killed; how many answers it saw."""
    command = [sys.executable, "-c", CLIENT, desk.url_of("ada")]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as client:
        assert client.stdout is not None
        ready, backend = client.stdout.readline().split()
        assert ready == "ready"
        assert client.stdout.readline().startswith("answer")
        time.sleep(draw.uniform(0, 0.08))
        os.kill(client.pid if victim == "client" else int(backend), signal.SIGKILL)
        return 1 + sum(line.startswith("answer") for line in client.stdout.read().splitlines())


def spent_after_recovery(desk: Desk) -> Decimal:
    deadline = time.monotonic() + 60
    while True:
        try:
            return desk.spent()["ada"]
        except psycopg.Error:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def kill_often(desk: Desk, victim: str, times: int) -> None:
    draw = random.Random(SEED)
    seen = 0
    for _ in range(times):
        seen += answers_before_the_kill(desk, victim, draw)
        spent = spent_after_recovery(desk)
        assert spent >= seen * Decimal("0.001"), f"seed {SEED}"
    recorded = desk.run("SELECT recorded <= spent FROM sqlrs.balances")
    assert recorded == [(True,), (True,)]


@pytest.mark.parametrize("victim", ["client", "backend"])
def test_killed_in_the_middle(crashing: Desk, victim: str) -> None:
    kill_often(crashing, victim, 10)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["client", "backend"])
def test_killed_a_hundred_times(crashing: Desk, victim: str) -> None:
    kill_often(crashing, victim, 100)


def test_without_waiting_for_the_disk_a_crash_would_give_answers_away(crashing: Desk) -> None:
    """The control: the check above sees a charge that a crash undoes."""
    crashing.run("CREATE OR REPLACE FUNCTION sqlrs.await_durable(place pg_lsn) RETURNS void "
                 "LANGUAGE sql AS ''")  # fmt: skip
    crashing.run("ALTER SYSTEM SET wal_writer_delay = '10s'")
    crashing.run("SELECT pg_reload_conf()")
    seen = 0
    draw = random.Random(SEED)
    for _ in range(10):
        seen += answers_before_the_kill(crashing, "backend", draw)
        if spent_after_recovery(crashing) < seen * Decimal("0.001"):
            return
    pytest.fail("no charge was lost")
