"""Configuration, users, logs, metrics, reload, shutdown and the death of the shadow."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.proxy import add_user, check_config, health, remove_user
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.logs import JsonFormatter, log
from sqlrs.proxy.metrics import Metrics
from sqlrs.proxy.policy.gates import CountGate, HandshakeGate, Handshaking, RateGate, TooMany
from sqlrs.proxy.policy.price import AnalystLimits
from sqlrs.proxy.protocol import tls
from sqlrs.proxy.users import Users, read_users
from sqlrs.proxy.warnings import warnings
from tests.proxy.double import EDGES, NOISE, DoubleBackend
from tests.proxy.harness import PASSWORD, RunningProxy, running_proxy

COUNT = "SELECT count(*) FROM edge"
ROOT = Path(__file__).parents[2]


def _read(folder: Path, text: str) -> ProxyConfig:
    (folder / "sqlrs.toml").write_text(text)
    return ProxyConfig.read(folder / "sqlrs.toml")


class TestConfiguration:
    def test_everything_has_a_default(self, tmp_path: Path) -> None:
        config = _read(tmp_path, "")
        assert config == ProxyConfig(users=tmp_path / "users.toml")
        assert config.analyst("anyone") == AnalystLimits(Decimal("0.1"), Decimal(1))

    def test_values_and_analysts(self, tmp_path: Path) -> None:
        text = """
        [proxy]
        listen = "0.0.0.0"
        users = "who.toml"
        latency_grid = 1
        [proxy.limits]
        connections = 7
        idle_seconds = 9
        [proxy.default]
        epsilon = "0.2"
        max_epsilon = 0.5
        [proxy.analysts.alice]
        max_epsilon = 2
        [proxy.analysts.bob]
        epsilon = "0.1"
        error_bars = "0.1"
        """
        config = _read(tmp_path, text)
        assert config.users == tmp_path / "who.toml"
        assert config.latency_grid == 1.0
        assert (config.limits.connections, config.limits.idle_seconds) == (7, 9.0)
        assert config.analyst("alice") == AnalystLimits(Decimal("0.2"), Decimal(2))
        assert config.analyst("bob") == AnalystLimits(
            Decimal("0.1"), Decimal("0.5"), Decimal("0.1")
        )
        assert config.analyst("carol") == AnalystLimits(Decimal("0.2"), Decimal("0.5"))

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("unknown = 1", "line 2: [proxy] has no key 'unknown'"),
            ("port = 'many'", "line 2: proxy.port must be a whole number, not a value of type str"),
            ("port = 70000", "line 2: proxy.port must be a whole number, 65535 or less"),
            ("port = true", "line 2: proxy.port must be a whole number"),
            ("tls = 'sometimes'", "line 2: proxy.tls must be one of require, allow, off"),
            ("tls_key = 'a.pem'", "proxy.tls_certificate and proxy.tls_key go together"),
            ("tls = 'off'\nlisten = '0.0.0.0'", "without TLS the proxy listens on this machine"),
            ("latency_grid = -1", "line 2: proxy.latency_grid must be a number of seconds above 0"),
            ("latency_grid = false", "line 2: proxy.latency_grid must be a number of seconds"),
            ("workers = 0", "line 2: proxy.workers must be a whole number, 1 or more"),
            ("readers = 1", "line 2: proxy.readers must be a whole number, 2 or more"),
            ("database = 'postgres'", "line 2: proxy.database cannot be 'postgres'"),
            ("log_level = 'loud'", "line 2: proxy.log_level must be one of debug, info"),
            ("limits = 3", "line 2: proxy.limits must be a section"),
            ("[proxy.limits]\nunknown = 1", "line 3: [proxy.limits] has no key 'unknown'"),
            ("[proxy.limits]\nconnections = 0", "line 3: proxy.limits.connections must be a"),
            ("[proxy.default]\nepsilon = 0", "line 3: proxy.default.epsilon: epsilon must be"),
            ("default = {epsilon = 0}", "line 2: proxy.default.epsilon: epsilon must be"),
            ("[proxy.default]\nepsilon = 2\nmax_epsilon = 1", "at most max_epsilon"),
            (
                "[proxy.default]\nepsilon = 0.6\nerror_bars = 0.5\nmax_epsilon = 1",
                "proxy.default: epsilon and error_bars together are at most max_epsilon",
            ),
            ("[proxy.default]\nunknown = 1", "line 3: [proxy.default] has no key 'unknown'"),
            ("[proxy.analysts]\nalice = 1", "line 3: proxy.analysts.alice must be a section"),
            (
                "[proxy.analysts.alice]\nepsilon = 'much'",
                "line 3: proxy.analysts.alice.epsilon: epsilon is not a positive decimal number",
            ),
            ("[proxies]", "line 2: there is no section 'proxies'"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path: Path, text: str, told: str) -> None:
        with pytest.raises(UsageError) as caught:
            _read(tmp_path, f"[proxy]\n{text}")
        assert told in caught.value.message

    def test_check_config(self, tmp_path: Path) -> None:
        (tmp_path / "graph.txt").write_text("1\t2\n2\t3\n3\t1\n")
        config = tmp_path / "sqlrs.toml"
        config.write_text(
            f'[data]\nledger = "sqlite:///{tmp_path}/budget.db"\n'
            '[data.tables]\nedge = "graph.txt"\n[proxy]\nport = 7000\n'
        )
        with pytest.raises(UsageError, match="names no user"):
            check_config(config)
        add_user(tmp_path / "users.toml", "alice", PASSWORD)
        lines = check_config(config)
        assert "listens on 127.0.0.1:7000, TLS require" in lines
        assert "exposes edge" in lines
        assert "private are main.edge" in lines
        assert "alice: epsilon 0.1, at most 1, 0 left" in lines
        config.write_text(config.read_text() + "[proxy.analysts.eve]\nepsilon = 1\n")
        with pytest.raises(UsageError, match="eve"):
            check_config(config)

    def test_check_config_warns_of_what_others_can_read(self, tmp_path: Path) -> None:
        (tmp_path / "graph.txt").write_text("1\t2\n2\t3\n3\t1\n")
        config = tmp_path / "sqlrs.toml"
        config.write_text(
            f'[data]\nledger = "sqlite:///{tmp_path}/budget.db"\n'
            '[data.tables]\nedge = "graph.txt"\n'
            '[proxy]\nstate_directory = "state"\nlisten = "127.0.0.1"\ntls = "allow"\n'
        )
        add_user(tmp_path / "users.toml", "alice", PASSWORD)
        state = tmp_path / "state"
        state.mkdir(mode=0o700)
        tls.self_signed(state)

        def warned() -> list[str]:
            return [line for line in check_config(config) if line.startswith("warning: ")]

        assert warned() == []
        files = [tmp_path / "users.toml", state / "server.key", tmp_path / "budget.db"]
        for file in files:
            file.chmod(0o644)
        told = warned()
        assert len(told) == 3
        for file, line in zip(files, told, strict=True):
            assert f"{file} can be read by every user" in line
            file.chmod(0o600)
        for file in files[:2]:
            file.chmod(0o660)
        assert all("can be changed by others" in line for line in warned())
        files[2].chmod(0o660)
        with pytest.raises(UsageError, match="others may write to the ledger's file"):
            check_config(config)
        for file in files:
            file.chmod(0o600)
        text = config.read_text()
        config.write_text(text.replace("127.0.0.1", "0.0.0.0"))
        assert [line for line in warned() if 'tls = "allow" on 0.0.0.0' in line] == warned() != []
        config.write_text(text.replace("127.0.0.1", "0.0.0.0").replace('"allow"', '"require"'))
        assert warned() == []

    def test_a_configuration_with_a_password_is_a_secret(self, tmp_path: Path) -> None:
        path = tmp_path / "sqlrs.toml"
        path.write_text("")
        path.chmod(0o644)
        proxy = ProxyConfig(users=tmp_path / "users.toml")
        for url, count in [("postgresql://me:secret@db/x", 1), ("postgresql://me@db/x", 0)]:
            assert len(list(warnings(path, Config(db=url), proxy))) == count

    def test_check_config_wants_a_ledger(self, tmp_path: Path) -> None:
        config = tmp_path / "sqlrs.toml"
        config.write_text('[data.tables]\nedge = "graph.txt"\n')
        with pytest.raises(UsageError, match="ledger"):
            check_config(config)


class TestUsers:
    def test_the_file_holds_verifiers_for_its_owner_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "users.toml"
        add_user(path, "alice", PASSWORD)
        add_user(path, "bob", "another password")
        first = read_users(path)["bob"]
        add_user(path, "alice", "a new password")
        assert sorted(read_users(path)) == ["alice", "bob"]
        assert read_users(path)["bob"] == first
        assert PASSWORD not in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert list(tmp_path.iterdir()) == [path]
        remove_user(path, "alice")
        assert sorted(read_users(path)) == ["bob"]
        with pytest.raises(UsageError):
            remove_user(path, "alice")

    @pytest.mark.parametrize("name", ["", "Alice", "pg_x", "sqlrs_x", "a b", 'a"b', "x" * 64, "1a"])
    def test_names_that_postgresql_would_change_are_refused(
        self, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(UsageError):
            add_user(tmp_path / "users.toml", name, PASSWORD)

    def test_short_passwords_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError):
            add_user(tmp_path / "users.toml", "alice", "1234567")

    @pytest.mark.parametrize(
        "text",
        ["[users]\nalice = 'secret'", "[users]\nalice = 1", "users = 1", "[other]\na = 1", "x"],
    )
    def test_a_broken_file_changes_nothing(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "users.toml"
        add_user(path, "alice", PASSWORD)
        users = Users(path)
        path.write_text(text)
        with pytest.raises(UsageError):
            users.reload()
        assert users.names() == ["alice"]


class TestGates:
    def test_a_bucket_fills_with_time(self) -> None:
        now = [0.0]
        gate = RateGate(per_second=2, burst=3, clock=lambda: now[0])
        assert [gate.take("a") for _ in range(4)] == [True, True, True, False]
        assert gate.take("b")
        now[0] = 0.5
        assert [gate.take("a") for _ in range(2)] == [True, False]
        now[0] = 100.0
        assert gate.level("a") == 3

    def test_a_count_gate_frees_its_places(self) -> None:
        gate = CountGate(total=2, each=1)
        with gate.enter("a"):
            with pytest.raises(TooMany), gate.enter("a"):
                pass
            with gate.enter("b"), pytest.raises(TooMany), gate.enter("c"):
                pass
            assert len(gate) == 1
        assert len(gate) == 0

    def test_the_oldest_handshake_of_an_address_makes_room(self) -> None:
        gate, ended = HandshakeGate(total=9, each=8), list[str]()
        with ExitStack() as stack:

            def enter(name: str, address: str = "here") -> Handshaking:
                return stack.enter_context(gate.enter(address, lambda: ended.append(name)))

            enter("elsewhere", "there")
            for number in range(8):
                one = enter(str(number))
                if number < 5:
                    # A quarter of the places is shielded for one user: 3 and 4.
                    one.shield("alice")
            for name in ("a", "b", "c", "d"):
                enter(name)
            assert ended == ["0", "1", "2", "5"]
            with pytest.raises(TooMany):
                enter("too many in all", "there")
        assert not gate._inside

    def test_shielded_handshakes_are_not_ended(self) -> None:
        gate = HandshakeGate(total=9, each=2)
        with ExitStack() as stack:
            for user in ("alice", "bob"):
                stack.enter_context(gate.enter("here", pytest.fail)).shield(user)
            with pytest.raises(TooMany):
                stack.enter_context(gate.enter("here", pytest.fail))


class TestLogsAndMetrics:
    def test_logs_have_no_room_for_statements_or_numbers(self) -> None:
        with pytest.raises(ValueError, match="sql"):
            log("answered", sql="SELECT 1")
        with pytest.raises(ValueError, match="value"):
            log("answered", value=5)

    def test_records_of_libraries_lose_their_text(self) -> None:
        record = logging.LogRecord("lib", logging.ERROR, "f", 1, "count is %s", (42,), None)
        line = json.loads(JsonFormatter().format(record))
        assert line["reason"] == "lib"
        assert "42" not in json.dumps({k: v for k, v in line.items() if k != "time"})

    def test_metrics_are_valid_prometheus_text(self) -> None:
        metrics = Metrics()
        metrics.count("sqlrs_errors_total", sqlstate="0A000")
        metrics.count("sqlrs_errors_total", sqlstate="0A000")
        text = metrics.text({"sqlrs_budget_remaining": {(("analyst", "alice"),): Decimal("1.50")}})
        assert 'sqlrs_errors_total{sqlstate="0A000"} 2\n' in text
        assert 'sqlrs_budget_remaining{analyst="alice"} 1.50\n' in text
        assert "# TYPE sqlrs_errors_total counter\n" in text
        with pytest.raises(ValueError, match="no counter"):
            metrics.count("sqlrs_connections")


@pytest.fixture(scope="module")
def backend() -> DoubleBackend:
    return DoubleBackend(Decimal(50))


@pytest.fixture(scope="module")
def proxy(
    backend: DoubleBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningProxy]:
    with running_proxy(backend, tmp_path_factory.mktemp("operation")) as running:
        yield running


def get(proxy: RunningProxy, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{proxy.status_port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


def _wait_until(reached: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_health_and_metrics(proxy: RunningProxy) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute(COUNT)
        with pytest.raises(psycopg.Error):
            connection.execute("COPY edge TO STDOUT")
        assert get(proxy, "/healthz") == (200, "ok\n")
        status, text = get(proxy, "/metrics")
    assert status == 200
    assert 'sqlrs_answers_total{analyst="alice"} 1\n' in text
    assert 'sqlrs_errors_total{sqlstate="0A000"} 1\n' in text
    assert 'sqlrs_budget_remaining{analyst="alice",dataset="sqlrs"} 49.5\n' in text
    assert "sqlrs_connections 1\n" in text
    assert "sqlrs_shadow_up 1\n" in text
    assert str(len(EDGES) + NOISE) not in text
    assert get(proxy, "/other")[0] == 404


def test_health_tells_when_counts_cannot_be_answered(
    proxy: RunningProxy, backend: DoubleBackend
) -> None:
    backend.ill = "the ledger does not answer"
    _wait_until(lambda: get(proxy, "/healthz") == (503, "the ledger does not answer\n"))
    assert "sqlrs_backend_up 0\n" in get(proxy, "/metrics")[1]
    backend.ill = None
    _wait_until(lambda: get(proxy, "/healthz")[0] == 200)
    assert "sqlrs_backend_up 1\n" in get(proxy, "/metrics")[1]


def test_a_look_that_hangs_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    answers, looks = threading.Event(), []

    def trouble() -> None:
        looks.append(1)
        answers.wait(30)

    async def ask() -> list[str | None]:
        looking = health.Health(lambda: True, trouble)
        told = [await looking.problem() for _ in range(3)]
        answers.set()
        while await looking.problem() is not None:
            await asyncio.sleep(0.01)
        return told

    told = asyncio.run(ask())
    assert all(text is not None and "in time" in text for text in told)
    assert len(looks) <= 2


def test_no_private_value_in_any_log_at_any_level(
    proxy: RunningProxy, backend: DoubleBackend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("SELECT count(*) FROM person WHERE name = 'Ada'")
        connection.execute("SELECT count(*) FROM person WHERE name = %s", ("Ada",))
        backend.breaks = RuntimeError("the count of Ada is 1")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT count(*) FROM person WHERE id = 4711")
        backend.breaks = None
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 'Ada' FROM nowhere")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(proxy.dsn(password="a wrong Ada"))
    formatter = JsonFormatter()
    lines = [formatter.format(record) for record in caplog.records]
    events = {json.loads(line)["event"] for line in lines}
    assert {"answered", "refused", "backend_failed", "authentication_failed"} <= events
    raw = [record.getMessage() for record in caplog.records if record.name.startswith("sqlrs")]
    for text in (*lines, *raw):
        for secret in ("Ada", "4711", str(1 + NOISE), PASSWORD, "SELECT", "person"):
            assert secret not in text


def test_reload_adds_and_removes_users(proxy: RunningProxy) -> None:
    users = proxy.folder / "users.toml"
    add_user(users, "dave", PASSWORD)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(proxy.dsn("dave"))
    proxy.call(proxy.proxy.reload)
    with psycopg.connect(proxy.dsn("dave"), autocommit=True) as dave:
        assert dave.execute("SELECT analyst FROM sqlrs.budget").fetchone() == ("dave",)
        with psycopg.connect(proxy.dsn(), autocommit=True) as alice:
            remove_user(users, "dave")
            proxy.call(proxy.proxy.reload)
            with pytest.raises(psycopg.OperationalError, match="user was removed"):
                dave.execute("SELECT 1")
            assert alice.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(proxy.dsn("dave"))
    users.write_text("broken")
    proxy.call(proxy.proxy.reload)
    assert psycopg.connect(proxy.dsn()).execute("SELECT 1").fetchone() == (1,)


def test_service_resumes_after_the_shadow_is_killed(proxy: RunningProxy) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute(COUNT)
        process = proxy.shadow.process
        assert process is not None
        os.kill(process, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            for _ in range(100):
                connection.execute("SELECT 1")
                time.sleep(0.05)
    _wait_until(lambda: "sqlrs_shadow_restarts_total 1" in get(proxy, "/metrics")[1])
    _wait_until(lambda: get(proxy, "/healthz")[0] == 200)
    with psycopg.connect(proxy.dsn(), autocommit=True) as again:
        assert again.execute(COUNT).fetchone() == (len(EDGES) + NOISE,)


def test_a_shadow_that_cannot_start_is_tried_again(
    proxy: RunningProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow = proxy.shadow
    assert shadow.process is not None
    with monkeypatch.context() as patch:
        patch.setattr(shadow, "_parent", tmp_path / "missing")
        before = proxy.proxy.service.metrics.value("sqlrs_shadow_restarts_total")
        os.kill(shadow.process, signal.SIGKILL)
        restarts = proxy.proxy.service.metrics.value
        _wait_until(lambda: restarts("sqlrs_shadow_restarts_total") >= before + 2)
        assert get(proxy, "/healthz") == (503, "the shadow database is not running\n")
        with pytest.raises(psycopg.OperationalError, match="starting up"):
            psycopg.connect(proxy.dsn())
    _wait_until(lambda: get(proxy, "/healthz")[0] == 200)
    with psycopg.connect(proxy.dsn(), autocommit=True) as again:
        assert again.execute("SELECT 1").fetchone() == (1,)


def test_shutdown_lets_a_running_count_finish(tmp_path: Path) -> None:
    backend = DoubleBackend()
    with ThreadPoolExecutor() as pool, running_proxy(backend, tmp_path) as proxy:
        idle = psycopg.connect(proxy.dsn("bob"), autocommit=True)
        busy = psycopg.connect(proxy.dsn(), autocommit=True)
        backend.seconds = 1.0
        running = pool.submit(lambda: busy.execute(COUNT).fetchone())
        while not backend.waiting and not running.done():
            time.sleep(0.01)
        stopping = pool.submit(proxy.call, proxy.proxy.stop)
        assert running.result(20) == (len(EDGES) + NOISE,)
        stopping.result(20)
        with pytest.raises(psycopg.OperationalError, match="shutting down"):
            idle.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(proxy.dsn())
        busy.close()
    assert [row.answer for row in backend.rows["alice"]] == [len(EDGES) + NOISE]


def test_the_unit_file_is_well_formed() -> None:
    unit = ROOT / "packaging" / "sqlrs.service"
    lines = unit.read_text(encoding="utf-8").splitlines()
    for needed in ("[Unit]", "[Service]", "[Install]", "ExecReload=/bin/kill -HUP $MAINPID"):
        assert needed in lines
    assert any(line.startswith("ExecStart=") and "serve --config" in line for line in lines)
    verify = "/usr/bin/systemd-analyze"
    if Path(verify).exists():
        done = subprocess.run([verify, "verify", unit], capture_output=True, text=True, check=False)
        assert "Unknown" not in done.stderr
        # Only the program itself is missing here.
        assert not [line for line in done.stderr.splitlines() if "/usr/bin/sqlrs" not in line]
    settings = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    for limit in ("MemoryMax", "TasksMax", "SystemCallFilter", "RestrictNamespaces", "LimitCORE"):
        assert settings.get(limit), limit
