"""Spark as it is deployed: a master with two workers, and a server of Spark Connect.

Every driver is a process of its own, since one has one application at a time.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from sqlrs.ledger.store import StoreLedger
from tests.support.spark import why_not
from tests.support.spark_cluster import ROOT, SparkProcesses, connect_server, standalone

pytestmark = pytest.mark.slow

# Each statement has a few exchanges; a pattern of more edges has dozens.
PATHS = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
SECONDS = 900


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = why_not()
    if reason is not None:
        pytest.skip(f"Spark cannot run here: {reason}")
    draw = random.Random(16)
    pairs = {(draw.randrange(60), draw.randrange(60)) for _ in range(900)}
    path = tmp_path_factory.mktemp("graph") / "edge.txt"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in sorted(pairs)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def cluster(edges: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcesses]:
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def expected(edges: Path) -> str:
    """The answer of DuckDB with the same random bits: all measured numbers are in it."""
    ran = _ran(["duckdb://", str(edges), "none", PATHS], dict(os.environ))
    return _answer(ran)


def _command(given: list[str]) -> list[str]:
    return [sys.executable, "-m", "tests.support.spark_release", *given]


def _ran(given: list[str], environment: dict[str, str]) -> str:
    ran = subprocess.run(
        _command(given),
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    return ran.stdout


def _answer(text: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith("answer ")]
    return line


def _until(child: subprocess.Popen[str], wanted: str) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(wanted):
            return
    raise AssertionError(f"the program ended before it said {wanted}")


def test_the_command_line_asks_a_cluster(cluster: SparkProcesses, edges: Path) -> None:
    command = [sys.executable, "-m", "sqlrs", "count", PATHS, "--db", cluster.url]
    ran = subprocess.run(
        [*command, "--table", f"edge={edges}", "--epsilon", "1"],
        env=cluster.environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[0].replace(",", "")) is not None
    # It ran on the workers.
    started = sorted(Path(cluster.logs["worker0"]).parent.glob("worker*/app-*/*"))
    assert len({one.parts[-3] for one in started}) == 2


def test_no_value_of_the_data_is_in_the_logs(cluster: SparkProcesses, tmp_path: Path) -> None:
    held = tmp_path / "held.csv"
    held.write_text("x\nsecret77\n5\n", encoding="utf-8")
    sql = "SELECT count(*) FROM held WHERE CAST(x AS INT) > 2"
    command = [sys.executable, "-m", "sqlrs", "count", sql, "--db", cluster.url, "--epsilon", "1"]
    ran = subprocess.run(
        [*command, "--table", f"held={held}", "--types", "held=x STRING"],
        env=cluster.environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode != 0
    folder = cluster.logs["master"].parent
    logs = [*cluster.logs.values(), *folder.glob("worker*/app-*/*/std*")]
    assert any(path.name == "stderr" for path in logs)
    for text in (ran.stdout, ran.stderr, *(one.read_text(errors="replace") for one in logs)):
        assert "secret77" not in text


def test_the_driver_is_killed(cluster: SparkProcesses, edges: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    ledger = f"sqlite:///{tmp_path}/budget.db"
    owner = StoreLedger(ledger)
    owner.grant(dataset="data", epsilon=10)
    owner.grant(analyst="analyst", epsilon=10)
    command = _command([cluster.url, str(edges), ledger, PATHS])
    with subprocess.Popen(
        command, env=cluster.environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        _until(child, "statement 1 ")
        child.send_signal(signal.SIGKILL)
        assert child.stdout is not None
        answered = sum(line.startswith("answer") for line in child.stdout)
    assert answered == 0
    assert owner.budget(dataset="data").spent == Decimal("0.5")
    assert [line.outcome for line in owner.history()] == ["reserved"]


def test_a_worker_is_killed_and_the_values_stay(
    cluster: SparkProcesses, edges: Path, expected: str
) -> None:
    command = _command([cluster.url, str(edges), "none", PATHS])
    with subprocess.Popen(
        command, env=cluster.environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        _until(child, "statement 2 ")
        cluster.kill("worker1")
        assert child.stdout is not None
        assert _answer(child.stdout.read()) == expected
    assert child.returncode == 0


def test_a_cluster_without_workers_says_so(edges: Path, tmp_path: Path) -> None:
    """Spark's own warning is silenced, and jobs wait as long as it takes."""
    with standalone(tmp_path / "empty", workers=0) as empty:
        command = [sys.executable, "-m", "sqlrs", "count", PATHS, "--db", empty.url]
        with subprocess.Popen(
            [*command, "--table", f"edge={edges}", "--epsilon", "1"],
            env=empty.environment,
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stderr is not None
            assert "no executor yet" in child.stderr.readline()
            child.send_signal(signal.SIGINT)
            assert "interrupted" in child.stderr.read()
        assert child.returncode == 130


def test_the_server_of_spark_connect_is_killed(edges: Path, tmp_path: Path) -> None:
    """Its client would go on asking for ten minutes."""
    tmp_path.chmod(0o700)
    ledger = f"sqlite:///{tmp_path}/budget.db"
    owner = StoreLedger(ledger)
    owner.grant(dataset="data", epsilon=10)
    owner.grant(analyst="analyst", epsilon=10)
    with connect_server(tmp_path / "server") as server:
        command = _command([server.url, str(edges), ledger, PATHS])
        with subprocess.Popen(
            command, env=server.environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as child:
            _until(child, "statement 1 ")
            server.kill("server")
            assert child.wait(120) != 0
            assert child.stdout is not None
            assert "answer" not in child.stdout.read()
    assert owner.budget(dataset="data").spent == Decimal("0.5")
    assert [line.outcome for line in owner.history()] == ["database_failed"]


def test_spark_connect(edges: Path, expected: str, tmp_path: Path) -> None:
    with connect_server(tmp_path / "server") as server:
        # The client has no Java: nothing but the protocol is used.
        environment = {**server.environment, "JAVA_HOME": os.devnull, "PATH": os.defpath}
        ran = _ran([server.url, str(edges), "none", PATHS], environment)
    assert _answer(ran) == expected
