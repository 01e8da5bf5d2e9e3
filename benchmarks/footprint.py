"""What one piece of work costs: CPU seconds, wall seconds, memory, and bytes on disk.

On a machine with other work, CPU seconds are what can be compared. Of DuckDB they are those of the
own process, all threads; of a PostgreSQL server also those of the server and its workers.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlrs.errors import EngineFailed, Interrupted

_POLL = 0.02
_TICK = os.sysconf("SC_CLK_TCK")
# Of all wall seconds, at least one in so many is expected to be worked for us.
_SHARE = 20


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor and of the clock."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Meter:
    """Measures work on an engine, and stops it at a limit. ``server``: the postmaster's id."""

    interrupt: Callable[[], None]
    limit: float
    server: int | None = None

    def cost(self, work: Callable[[], object]) -> Cost | str:
        """What the work costs, or why there is no end of it."""
        with self._limited():
            cpu, wall = self._cpu(), time.perf_counter()
            try:
                work()
            except Interrupted:
                return "limit"
            except EngineFailed as failed:
                return failed.code
            return Cost(self._cpu() - cpu, time.perf_counter() - wall)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        ended = threading.Event()
        begun, last = self._cpu(), time.monotonic() + _SHARE * self.limit

        def watch() -> None:
            while not ended.wait(_POLL):
                if self._cpu() - begun > self.limit or time.monotonic() > last:
                    self.interrupt()
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _cpu(self) -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        own = used.ru_utime + used.ru_stime
        return own if self.server is None else own + server_cpu(self.server)


def server_cpu(postmaster: int) -> float:
    """CPU seconds of a server: its own, its children's, and those of children that ended."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            # The name, in parentheses, may hold blanks.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            user, system, ended_user, ended_system = map(int, fields[11:15])
            if int(entry.name) == postmaster:
                ticks += user + system + ended_user + ended_system
            elif int(fields[1]) == postmaster:
                ticks += user + system
    return ticks / _TICK


@contextmanager
def watched_folder(folder: Path) -> Iterator[Callable[[], int]]:
    """The most bytes that lay in a folder meanwhile."""
    ended = threading.Event()
    found = [0]

    def watch() -> None:
        while not ended.wait(_POLL):
            found[0] = max(found[0], _size(folder))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: found[0]
    finally:
        ended.set()
        watcher.join()


def _size(folder: Path) -> int:
    """The bytes of all files; one that vanishes meanwhile has none."""
    found = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            found += path.stat().st_blocks * 512
    return found


def forget_peak() -> None:
    """Begin anew with the most memory that this process held, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
