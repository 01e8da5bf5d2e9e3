"""The process that reads analysts' SQL: parses, decides, compiles, and may be killed at any time.

Pickled messages, each behind its length, come from the proxy on standard input and go back on
standard output.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from typing import BinaryIO

from sqlrs.errors import SqlrsError
from sqlrs.proxy.backend import Checker, TableShape
from sqlrs.proxy.policy.decisions import Decision, Policy, split
from sqlrs.proxy.policy.parameters import inline
from sqlrs.proxy.warm import import_all
from sqlrs.quoting import Sketch
from sqlrs.records import dataclass

HEADER = struct.Struct("!I")
_FIRST = "SELECT count(*) FROM a JOIN b ON a.x = b.y WHERE a.z > 1"
MEMORY_BYTES = 1 << 30
"""Address space of one worker: past it the statement that is read is refused."""


@dataclass(frozen=True)
class Setup:
    """What a worker needs before its first job. ``seconds`` ends a worker nobody waits for."""

    policy: Policy
    checker: Checker
    seconds: float


@dataclass(frozen=True)
class Plans:
    """Split a text into statements and decide about each."""

    sql: str

    def run(self, setup: Setup) -> list[Decision]:
        """The plans, in order."""
        return [setup.policy.plan(written) for written in split(self.sql)]


@dataclass(frozen=True)
class Compiles:
    """Find out whether the backend would refuse a text."""

    sql: str

    def run(self, setup: Setup) -> TableShape | None:
        """Raise the refusal, if there is one; else what kind of answer there will be."""
        return setup.checker.check(self.sql)


@dataclass(frozen=True)
class Sketches:
    """Find out how a text is understood."""

    sql: str

    def run(self, setup: Setup) -> Sketch:
        """Raise the refusal, if there is one; else the sketch."""
        return setup.checker.sketch(self.sql)


@dataclass(frozen=True)
class Written:
    """Write parameters into a statement as literals."""

    sql: str
    types: Sequence[int]
    values: Sequence[bytes | None]
    formats: Sequence[int]

    def run(self, setup: Setup) -> str:
        """The statement without parameters."""
        return inline(self.sql, self.types, self.values, self.formats)


Job = Plans | Compiles | Sketches | Written


@dataclass(frozen=True)
class Done:
    """A job's result; ``problem`` is its refusal, ``broken`` says that it failed otherwise."""

    value: object = None
    problem: SqlrsError | None = None
    broken: bool = False


def packed(message: object) -> bytes:
    """A message with its length before it."""
    body = pickle.dumps(message)
    return HEADER.pack(len(body)) + body


def main() -> None:
    """Serve jobs until the proxy closes the pipe."""
    logging.disable(logging.CRITICAL)
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    setup = _received(incoming)
    if not isinstance(setup, Setup):
        return
    # No core and no more memory than one statement can need.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    # Before anybody waits for it: modules, and the parser's tables; no matter what comes of it.
    import_all()
    for first in (Plans(_FIRST), Compiles(_FIRST)):
        _done(first, setup)
    _send(outgoing, Done())
    while (job := _received(incoming)) is not None:
        # The alarm's own action ends the process: nobody is left to do it if the proxy is gone.
        signal.setitimer(signal.ITIMER_REAL, setup.seconds)
        done = _done(job, setup)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(outgoing, done)


def _done(job: object, setup: Setup) -> Done:
    try:
        if isinstance(job, Plans | Compiles | Sketches | Written):
            return Done(job.run(setup))
    except SqlrsError as problem:
        # Without its cause, which need not be one that can be sent.
        problem.__cause__ = problem.__context__ = None
        return Done(problem=problem)
    except Exception:
        pass
    return Done(broken=True)


def _received(stream: BinaryIO) -> object:
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (size,) = HEADER.unpack(header)
    body = stream.read(size)
    return None if len(body) < size else pickle.loads(body)


def _send(stream: BinaryIO, message: object) -> None:
    stream.write(packed(message))
    stream.flush()
