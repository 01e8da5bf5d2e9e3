"""Wrong passwords: who shares an address with a guesser still gets in, and nobody is enumerated."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import psycopg
import pytest

from sqlrs.proxy.config import Limits
from sqlrs.proxy.policy.gates import TooMany
from sqlrs.proxy.policy.guesses import GuessGate, network
from tests.proxy.double import DoubleBackend
from tests.proxy.harness import RunningProxy, running_proxy

LIMITS = Limits(failures_per_minute=3, failures_per_address=8, failures_in_all=1000)


def _refusal(proxy: RunningProxy, user: str, password: str) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(proxy.dsn(user, password=password))
    return str(caught.value).split("FATAL:")[1].strip().splitlines()[0]


def _gets_in(proxy: RunningProxy, user: str) -> bool:
    with psycopg.connect(proxy.dsn(user)) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def test_a_guesser_locks_out_nobody_else_behind_the_address(tmp_path: Path) -> None:
    with running_proxy(DoubleBackend(), tmp_path, limits=LIMITS) as proxy:
        assert _gets_in(proxy, "carol")
        # The same words at the same attempt, whether the user exists or not.
        attempts = [(_refusal(proxy, "alice", "wrong")) for _ in range(4)]
        assert attempts == ["authentication failed"] * 3 + ["too many failed authentications"]
        assert [_refusal(proxy, "nobody_known", "wrong") for _ in range(4)] == attempts
        assert _refusal(proxy, "alice", "correct hörse") == "too many failed authentications"
        assert _gets_in(proxy, "bob")
        assert _gets_in(proxy, "carol")
        # The address as a whole has a limit too; who was right before gets in all the same.
        for number in range(2):
            assert _refusal(proxy, f"guess_{number}", "wrong") == "authentication failed"
        assert _refusal(proxy, "guess_9", "wrong") == "too many failed authentications"
        assert _gets_in(proxy, "bob")


def test_guesses_at_once_are_not_more_guesses(tmp_path: Path) -> None:
    with running_proxy(DoubleBackend(), tmp_path, limits=LIMITS) as proxy:
        told: list[str] = []
        ready = threading.Barrier(12)

        def guess() -> None:
            ready.wait(10)
            told.append(_refusal(proxy, "alice", "wrong"))

        threads = [threading.Thread(target=guess) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert told.count("authentication failed") == 3
        assert told.count("too many failed authentications") == 9


class TestGate:
    def test_the_limits_apply_to_their_own(self) -> None:
        now = [0.0]
        gate = GuessGate(2, 5, 8, clock=lambda: now[0])
        gate.succeeded("10.0.0.9", "regular")
        for user in ("a", "a", "b", "b", "c"):
            gate.check("10.0.0.1", user)
            gate.failed("10.0.0.1", user)
        for user in ("a", "c", "d"):
            with pytest.raises(TooMany):
                gate.check("10.0.0.1", user)
        gate.check("10.0.0.2", "a")
        for number in range(3):
            gate.failed(f"10.0.1.{number}", "a")
        # All failures together are used up: strangers wait, regulars do not.
        with pytest.raises(TooMany):
            gate.check("10.0.0.2", "a")
        gate.check("10.0.0.9", "regular")
        now[0] = 60.0
        gate.check("10.0.0.1", "a")
        gate.check("10.0.0.2", "a")

    def test_its_memory_is_bounded(self) -> None:
        gate = GuessGate(10, 10, 10)
        for number in range(30_000):
            address = f"10.{number % 256}.{number // 256 % 256}.1"
            gate.failed(address, f"{number}" + "x" * 5000)
            gate.succeeded(address, f"{number}" + "x" * 5000)
        entries = [*gate._pairs._buckets, *gate._addresses._buckets, *gate._known]
        assert len(entries) <= 30_000
        assert sum(map(sys.getsizeof, entries)) < 5_000_000

    @pytest.mark.parametrize(
        ("peer", "expected"),
        [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("fe80::1%eth0", "fe80::/64"),
            ("unix", "unix"),
        ],
    )
    def test_what_counts_as_one_address(self, peer: str, expected: str) -> None:
        assert network(peer) == expected
