"""Limits, slow and broken clients, cancels and time: the proxy goes on for everybody else."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest

from sqlrs.proxy.config import Limits
from tests.proxy.double import EDGES, NOISE, DoubleBackend
from tests.proxy.harness import PASSWORD, RunningProxy, running_proxy
from tests.proxy.test_handshake import SSL, startup

COUNT = "SELECT count(*) FROM edge"
LIMITS = Limits(
    connections_per_analyst=6,
    handshakes_per_address=8,
    message_bytes=20_000,
    statement_characters=5_000,
    statements_per_second=20.0,
    statement_burst=60,
    failures_per_minute=6,
    authentication_seconds=1.5,
    message_seconds=1.0,
    send_seconds=1.0,
    idle_seconds=2.8,
)


@pytest.fixture(scope="module")
def backend() -> DoubleBackend:
    return DoubleBackend(Decimal(1000))


@pytest.fixture(scope="module")
def proxy(
    backend: DoubleBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningProxy]:
    with running_proxy(
        backend, tmp_path_factory.mktemp("hardening"), limits=LIMITS, workers=2
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def quick(backend: DoubleBackend) -> Iterator[None]:
    yield
    backend.seconds = 0.0


def connect(proxy: RunningProxy, user: str = "alice", **more: str) -> psycopg.Connection:
    return psycopg.connect(proxy.dsn(user, **more), autocommit=True)


def works(proxy: RunningProxy, user: str = "bob") -> bool:
    with connect(proxy, user) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def raw_tls(proxy: RunningProxy) -> ssl.SSLSocket:
    raw = socket.create_connection(("127.0.0.1", proxy.port), timeout=10)
    raw.sendall(SSL)
    assert raw.recv(1) == b"S"
    context = ssl.create_default_context(cafile=str(proxy.certificate))
    return context.wrap_socket(raw, server_hostname="localhost")


@contextmanager
def silent_connections(proxy: RunningProxy, number: int) -> Iterator[list[socket.socket]]:
    address = ("127.0.0.1", proxy.port)
    silent = [socket.create_connection(address, timeout=10) for _ in range(number)]
    try:
        time.sleep(0.2)
        yield silent
    finally:
        for raw in silent:
            raw.close()


def read_all(raw: socket.socket) -> bytes:
    received = b""
    try:
        while chunk := raw.recv(65536):
            received += chunk
    except (ConnectionError, ssl.SSLError):
        pass
    return received


@pytest.mark.parametrize("end", ["sync", "flush"])
def test_an_answer_does_not_wait_for_the_statement_behind_it(
    proxy: RunningProxy, backend: DoubleBackend, end: str
) -> None:
    backend.seconds = 1.5
    before = len(backend.rows.get("carol", []))
    with closing(connect(proxy, "carol")) as connection:
        raw = connection.pgconn
        raw.enter_pipeline_mode()
        raw.nonblocking = True
        raw.send_query_params(b"SELECT 1", [])
        raw.pipeline_sync() if end == "sync" else raw.send_flush_request()
        raw.send_query_params(f"{COUNT} WHERE src = {len(end)}".encode(), [])
        raw.pipeline_sync()
        while raw.flush() or raw.is_busy():
            assert select.select([raw.socket], [], [], 10)[0]
            raw.consume_input()
        quick = raw.get_result()
        assert quick is not None
        assert quick.get_value(0, 0) == b"1"
        assert len(backend.rows.get("carol", [])) == before
        while len(backend.rows.get("carol", [])) == before:
            time.sleep(0.01)


class TestConnections:
    def test_encryption_is_required(self, proxy: RunningProxy) -> None:
        with pytest.raises(psycopg.OperationalError, match="must be encrypted"):
            connect(proxy, sslmode="disable")

    def test_bytes_behind_the_tls_request_end_the_connection(self, proxy: RunningProxy) -> None:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as raw:
            raw.sendall(SSL + startup(user="alice"))
            assert b"S" not in read_all(raw)[:1]

    def test_protocol_3_2_is_spoken(self, proxy: RunningProxy) -> None:
        with raw_tls(proxy) as raw:
            raw.sendall(startup(3 << 16 | 2, user="alice"))
            assert raw.recv(1) == b"R"
        with raw_tls(proxy) as raw:
            raw.sendall(startup(3 << 16 | 7, user="alice"))
            assert raw.recv(9) == b"v\0\0\0\x0c\0\x03\0\x02"

    def test_an_analyst_has_so_many_connections(self, proxy: RunningProxy) -> None:
        held = [connect(proxy) for _ in range(6)]
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            connect(proxy)
        assert works(proxy)
        for connection in held:
            connection.close()
        _eventually(lambda: works(proxy, "alice"))

    def test_a_database_of_another_name_does_not_exist(self, proxy: RunningProxy) -> None:
        with pytest.raises(psycopg.OperationalError, match='database "other" does not exist'):
            connect(proxy, dbname="other")
        with connect(proxy, dbname="alice") as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("sqlrs",)

    def test_startup_settings_pass_the_whitelist(self, proxy: RunningProxy) -> None:
        with connect(proxy, options="-c sqlrs.epsilon=0.25 --timezone=UTC") as connection:
            assert connection.execute("SHOW sqlrs.epsilon").fetchone() == ("0.25",)
        for options in ("-c sqlrs.epsilon=100", "-c role=sqlrs_owner", "-f x", "-c work_mem=1GB"):
            with pytest.raises(psycopg.OperationalError):
                connect(proxy, options=options)


class TestSlowAndBroken:
    def test_a_silent_client_is_dropped_and_stalls_nobody(self, proxy: RunningProxy) -> None:
        silent = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(4)]
        assert works(proxy)
        for raw in silent:
            raw.settimeout(60)
            assert raw.recv(1) == b""
            raw.close()

    def test_silent_connections_do_not_lock_out_an_address(self, proxy: RunningProxy) -> None:
        """They need no password, and whoever stands behind the same gateway would be refused."""
        with silent_connections(proxy, LIMITS.handshakes_per_address) as silent:
            assert works(proxy)
            # Each newcomer takes the place of the oldest, which is ended before its time.
            assert silent[0].recv(1) == b""

    def test_silent_connections_end_no_handshake_of_a_known_user(self, proxy: RunningProxy) -> None:
        assert works(proxy)
        with raw_tls(proxy) as known, raw_tls(proxy) as unknown:
            for raw, user in ((known, "bob"), (unknown, "nobody_known")):
                raw.sendall(startup(user=user))
                assert raw.recv(1) == b"R"
                raw.recv(1000)
            with silent_connections(proxy, LIMITS.handshakes_per_address):
                assert read_all(unknown) == b""
                known.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    known.recv(1)

    def test_a_message_that_never_ends_is_dropped(self, proxy: RunningProxy) -> None:
        native = pytest.importorskip("pg8000.native")
        client = native.Connection(
            "alice",
            host="localhost",
            port=proxy.port,
            password=PASSWORD,
            database="sqlrs",
            ssl_context=ssl.create_default_context(cafile=str(proxy.certificate)),
        )
        began = time.monotonic()
        client._sock.write(b"Q\0\0\1\0SELECT")
        client._sock.flush()
        assert works(proxy)
        assert b"57P05" in client._sock.read()
        # The time for one message, not the longer one between messages.
        assert time.monotonic() - began < LIMITS.idle_seconds

    def test_a_length_beyond_the_limit_ends_the_connection(self, proxy: RunningProxy) -> None:
        with connect(proxy) as connection, pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT '" + "x" * 30_000 + "'")
        assert works(proxy)

    def test_a_long_statement_is_refused_and_the_connection_lives(
        self, proxy: RunningProxy
    ) -> None:
        with connect(proxy) as connection:
            with pytest.raises(psycopg.errors.ProgramLimitExceeded):
                connection.execute("SELECT '" + "x" * 6_000 + "'")
            assert connection.execute("SELECT 1").fetchone() == (1,)

    def test_an_idle_connection_is_ended(self, proxy: RunningProxy) -> None:
        with connect(proxy) as connection:
            connection.execute("SELECT 1")
            time.sleep(3.4)
            with pytest.raises(psycopg.OperationalError, match="idle for too long"):
                connection.execute("SELECT 1")

    def test_a_client_that_takes_no_answers_is_dropped(self, proxy: RunningProxy) -> None:
        wide = "SELECT a.*, b.* FROM pg_proc a, pg_proc b LIMIT 100000"
        connection = connect(proxy)
        connection.pgconn.send_query(wide.encode())
        connection.pgconn.flush()
        assert works(proxy)
        _eventually(lambda: len(proxy.proxy.service.sessions) == 0, seconds=8)
        connection.close()

    def test_a_statement_that_keeps_the_shadow_busy_is_stopped(self, proxy: RunningProxy) -> None:
        service = proxy.proxy.service
        service.config = replace(
            service.config, limits=replace(service.config.limits, catalog_seconds=0.3)
        )
        try:
            with connect(proxy) as connection:
                with pytest.raises(psycopg.errors.QueryCanceled):
                    # Pairs need no room; one long series may reach the limit of temporary files.
                    connection.execute(
                        "SELECT count(*) FROM generate_series(1, 30000) a, "
                        "generate_series(1, 30000) b"
                    )
                assert connection.execute("SELECT 1").fetchone() == (1,)
        finally:
            service.config = replace(service.config, limits=LIMITS)

    def test_statements_are_limited_per_second(self, proxy: RunningProxy) -> None:
        with connect(proxy, "carol") as connection:
            with pytest.raises(psycopg.Error) as caught:
                for _ in range(300):
                    connection.execute("SELECT 1")
            assert caught.value.sqlstate == "53000"
            assert works(proxy)
            time.sleep(0.3)
            assert connection.execute("SELECT 1").fetchone() == (1,)


class TestCounts:
    def test_cancel(self, proxy: RunningProxy, backend: DoubleBackend) -> None:
        backend.seconds = 30.0
        with connect(proxy) as connection:
            timer = threading.Timer(0.3, connection.cancel_safe)
            timer.start()
            began = time.monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(f"{COUNT} WHERE src = 50")
            assert time.monotonic() - began < backend.seconds
            timer.join()
            backend.seconds = 0.0
            assert connection.execute(COUNT).fetchone() == (len(EDGES) + NOISE,)

    def test_a_cancel_with_the_wrong_key_is_ignored(
        self, proxy: RunningProxy, backend: DoubleBackend
    ) -> None:
        backend.seconds = 0.5
        with connect(proxy) as connection:
            process = connection.pgconn.backend_pid
            request = struct.pack("!IIII", 16, 80877102, process, 12345)

            def attack() -> None:
                with socket.create_connection(("127.0.0.1", proxy.port)) as raw:
                    raw.sendall(request)
                    assert raw.recv(1) == b""

            threading.Timer(0.1, attack).start()
            row = connection.execute(f"{COUNT} WHERE src = 51").fetchone()
            assert row == (NOISE,)

    def test_statement_timeout(self, proxy: RunningProxy, backend: DoubleBackend) -> None:
        backend.seconds = 30.0
        with connect(proxy) as connection:
            connection.execute("SET statement_timeout = '200ms'")
            with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
                connection.execute(f"{COUNT} WHERE src = 52")

    def test_a_client_that_leaves_stops_its_count(
        self, proxy: RunningProxy, backend: DoubleBackend
    ) -> None:
        backend.seconds = 30.0
        connection = connect(proxy)
        connection.pgconn.send_query(f"{COUNT} WHERE src = 53".encode())
        connection.pgconn.flush()
        time.sleep(0.3)
        connection.close()
        _eventually(lambda: len(proxy.proxy.service.sessions) == 0)

    def test_one_analyst_does_not_take_all_workers(
        self, proxy: RunningProxy, backend: DoubleBackend
    ) -> None:
        service = proxy.proxy.service
        assert service.config.counts_per_analyst == 2
        service._turns.clear()
        service.config = replace(service.config, counts_per_analyst=1)
        backend.seconds = 30.0
        held = [connect(proxy) for _ in range(3)]
        try:
            for number, connection in enumerate(held):
                connection.pgconn.send_query(f"{COUNT} WHERE src = {60 + number}".encode())
                connection.pgconn.flush()
            _eventually(lambda: backend.waiting == 1)
            backend.seconds = 0.0
            with connect(proxy, "bob") as connection:
                connection.execute(f"{COUNT} WHERE src = 70")
            # The other worker answered: the first of alice's counts is still running.
            assert backend.waiting == 1
        finally:
            for connection in held:
                connection.close()
            service._turns.clear()
            service.config = replace(service.config, counts_per_analyst=2)

    def test_answers_come_on_the_time_grid(
        self, proxy: RunningProxy, backend: DoubleBackend
    ) -> None:
        service = proxy.proxy.service
        service.config = replace(service.config, latency_grid=0.4)
        try:
            with connect(proxy) as connection:
                for seconds in (0.0, 0.2):
                    backend.seconds = seconds
                    began = time.monotonic()
                    connection.execute(f"{COUNT} WHERE src = {80 + int(10 * seconds)}")
                    assert time.monotonic() - began >= 0.4
                backend.breaks = RuntimeError("broken")
                began = time.monotonic()
                with pytest.raises(psycopg.Error):
                    connection.execute(f"{COUNT} WHERE src = 89")
                assert time.monotonic() - began >= 0.4
        finally:
            backend.breaks = None
            service.config = replace(service.config, latency_grid=0.0)


class TestPasswords:
    def test_failures_look_alike_take_the_same_time_and_are_limited(
        self, proxy: RunningProxy
    ) -> None:
        seen = set()
        for user, password in [("alice", "wrong"), ("nobody_known", PASSWORD)]:
            began = time.monotonic()
            with pytest.raises(psycopg.OperationalError) as caught:
                connect(proxy, user, password=password)
            assert time.monotonic() - began >= 0.5
            seen.add(str(caught.value).split("FATAL:")[1])
        assert len(seen) == 1
        for _ in range(5):
            with pytest.raises(psycopg.OperationalError):
                connect(proxy, password="wrong")
        with pytest.raises(psycopg.OperationalError, match="too many failed"):
            connect(proxy)


def _eventually(check: object, seconds: float = 5.0) -> None:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            if check():  # type: ignore[operator]
                return
        except psycopg.Error:
            pass
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")
