"""Clients in threads that ask on through faults: what they were told, and every error."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import psycopg

from tests.proxy.books import Received

# Not the default, so that a session that silently lost its settings would show.
PRICE = Decimal("0.25")
_SIMPLE = "SELECT count(*) FROM edge WHERE src = {} AND dst <> {}"
_PREPARED = "SELECT count(*) FROM edge WHERE src = %s AND dst <> %s"
_CATALOG = "SELECT relname FROM pg_catalog.pg_class WHERE relname = %s"


class Failure(NamedTuple):
    """An error that a client got: what it did, and what it was told."""

    kind: str
    sqlstate: str | None
    message: str


@dataclass
class Crowd:
    """Threads of clients; whoever loses its connection opens another one and goes on."""

    dsn: Callable[[str], str]
    analysts: Sequence[str]
    received: list[Received] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    worked: dict[str, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _broken: list[BaseException] = field(default_factory=list)

    @contextmanager
    def asking(self, clients: int = 6) -> Iterator[Crowd]:
        """Let them ask while the block runs; a client that met something odd fails the block."""
        threads = [
            threading.Thread(
                target=self._guarded, args=(n, self.analysts[n % len(self.analysts)]), daemon=True
            )
            for n in range(clients)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        if self._broken:
            raise self._broken[0]

    def wait_for_more(self, more: int = 3) -> None:
        """Until that many more statements of each kind worked."""
        goal = {kind: self.worked.get(kind, 0) + more for kind in self._kinds()}
        self.wait_until(lambda: all(self.worked.get(kind, 0) >= goal[kind] for kind in goal))

    def wait_until(self, reached: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            assert not self._broken, self._broken[0]
            assert time.monotonic() < deadline, (self.worked, self.failures[-5:])
            time.sleep(0.02)

    def _guarded(self, number: int, analyst: str) -> None:
        try:
            self._client(random.Random(number), analyst)
        except BaseException as problem:
            self._broken.append(problem)

    def _client(self, chance: random.Random, analyst: str) -> None:
        while not self._stop.is_set():
            try:
                connection = psycopg.connect(self.dsn(analyst), autocommit=True)
            except psycopg.OperationalError as problem:
                self.failures.append(Failure("connect", problem.sqlstate, str(problem)))
                time.sleep(0.05)
                continue
            with connection:
                self._converse(connection, chance, analyst)

    def _converse(
        self, connection: psycopg.Connection[Any], chance: random.Random, analyst: str
    ) -> None:
        notices: list[str] = []
        connection.add_notice_handler(lambda report: notices.append(str(report.message_primary)))
        kinds = self._kinds()
        kind = "set"
        while not self._stop.is_set() and not connection.closed:
            notices.clear()
            try:
                if kind == "set":
                    connection.execute(f"SET sqlrs.epsilon = {PRICE}")
                else:
                    value = kinds[kind](connection, chance)
                    if value is not None:
                        told = [text for text in notices if text.startswith("sqlrs: ")]
                        self.received.append(Received.of(analyst, value, told[-1]))
                self.worked[kind] = self.worked.get(kind, 0) + 1
            except psycopg.Error as problem:
                self.failures.append(Failure(kind, problem.sqlstate, str(problem)))
            kind = chance.choice(list(kinds))
            time.sleep(chance.random() * 0.02)

    def _kinds(self) -> dict[str, Callable[[psycopg.Connection[Any], random.Random], int | None]]:
        return {
            "simple": _simple,
            "prepared": _prepared,
            "transaction": _transaction,
            "catalog": _catalog,
        }


def _simple(connection: psycopg.Connection[Any], chance: random.Random) -> int:
    sql = _SIMPLE.format(chance.randrange(300), chance.randrange(20))
    return _one(connection.execute(sql))


def _prepared(connection: psycopg.Connection[Any], chance: random.Random) -> int:
    values = (chance.randrange(300), chance.randrange(20))
    return _one(connection.execute(_PREPARED, values, prepare=True))


def _transaction(connection: psycopg.Connection[Any], chance: random.Random) -> int:
    with connection.transaction():
        _catalog(connection, chance)
        return _prepared(connection, chance)


def _catalog(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    assert connection.execute(_CATALOG, ("edge",)).fetchall() == [("edge",)]


def _one(cursor: psycopg.Cursor[Any]) -> int:
    ((value,),) = cursor.fetchall()
    return int(value)
