"""Spark as several processes on the loopback: a master with two workers, or a Connect server.

Each is a process of its own, known by its id; all of them end with the block.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
# Few rows: neither memory nor many tasks. Applications that sqlrs starts read it as well.
_DEFAULTS = """
spark.driver.memory 512m
spark.executor.memory 512m
spark.executor.cores 1
spark.sql.shuffle.partitions 2
spark.ui.enabled false
"""
_SECONDS = 300.0
_DYING_WITH_US = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


@dataclass
class SparkProcesses:
    """Where they are reached, the processes by name, and the environment of a driver."""

    url: str
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)

    def kill(self, name: str) -> None:
        """End one process at once, by its id."""
        self.processes[name].kill()
        self.processes[name].wait()


@contextmanager
def standalone(folder: Path, workers: int = 2, *, megabytes: int = 768) -> Iterator[SparkProcesses]:
    """A master and workers of one core each, and of some memory for their executors."""
    port = free_port()
    running = SparkProcesses(f"spark://127.0.0.1:{port}", _environment(folder))
    at = ["--host", "127.0.0.1"]
    with ExitStack() as stack:
        web = ["--webui-port", "0"]
        stack.enter_context(
            _process(running, folder, "master", _MASTER, [*at, "--port", str(port), *web])
        )
        _wait_for(running, "master", lambda: _listens(port))
        for number in range(workers):
            name = f"worker{number}"
            small = ["--cores", "1", "--memory", f"{megabytes}m", "--work-dir", str(folder / name)]
            stack.enter_context(
                _process(running, folder, name, _WORKER, [*at, *web, *small, running.url])
            )
        _wait_for(
            running, "workers", lambda: _said(running, "master", "Registering worker", workers)
        )
        yield running


@contextmanager
def connect_server(folder: Path) -> Iterator[SparkProcesses]:
    """A server of Spark Connect with two threads."""
    port = free_port()
    environment = {**_environment(folder), "SPARK_DAEMON_MEMORY": "640m"}
    running = SparkProcesses(f"sc://127.0.0.1:{port}", environment)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    options = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    given = ["--master", "local[2]", *options, "--class", _CONNECT, "spark-internal"]
    with _process(running, folder, "server", _SUBMIT, given):
        _wait_for(running, "server", lambda: _listens(port))
        yield running


def free_port() -> int:
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(folder: Path) -> dict[str, str]:
    settings = folder / "conf"
    settings.mkdir(parents=True)
    (settings / "spark-defaults.conf").write_text(_DEFAULTS, encoding="utf-8")
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return {
        **os.environ,
        "SPARK_HOME": str(Path(spec.origin).parent),
        "SPARK_CONF_DIR": str(settings),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYTHONPATH": str(ROOT),
    }


@contextmanager
def _process(
    running: SparkProcesses, folder: Path, name: str, of: str, given: list[str]
) -> Iterator[None]:
    """spark-class replaces itself by the JVM, so that the id is the JVM's own.

    Where there is setpriv, the kernel ends it with the thread that started it.
    """
    log = running.logs[name] = folder / f"{name}.log"
    program = Path(running.environment["SPARK_HOME"], "bin", "spark-class")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*_DYING_WITH_US, str(program), of, *given],
            env=running.environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    running.processes[name] = process
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _said(running: SparkProcesses, name: str, words: str, times: int) -> bool:
    text = running.logs[name].read_text(encoding="utf-8", errors="replace")
    return len(re.findall(words, text)) >= times


def _wait_for(running: SparkProcesses, what: str, there: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS
    while not there():
        ended = any(process.poll() is not None for process in running.processes.values())
        if ended or time.monotonic() > until:
            raise RuntimeError(f"{what}: not started; the logs are {running.logs}")
        time.sleep(0.2)
