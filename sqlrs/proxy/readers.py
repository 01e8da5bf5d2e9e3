"""A few worker processes that read analysts' SQL: each job has a deadline and may be given up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from collections import OrderedDict
from typing import TypeVar, cast

from sqlrs.errors import QueryRefused
from sqlrs.proxy.backend import Checker, TableShape
from sqlrs.proxy.logs import log
from sqlrs.proxy.policy.decisions import Decision, Policy
from sqlrs.proxy.worker import (
    HEADER,
    Compiles,
    Done,
    Job,
    Plans,
    Setup,
    Sketches,
    Written,
    packed,
)
from sqlrs.quoting import Sketch
from sqlrs.refusals import refusal

_Value = TypeVar("_Value")
_Text = tuple[str, str]

_PROGRAM = "from sqlrs.proxy.worker import main; main()"
_START_SECONDS = 60.0
# A job that nobody waits for any more may end by itself: a new worker costs more than most jobs.
_GRACE_SECONDS = 0.3
_PAUSE_SECONDS = 0.5
_REMEMBERED = 256
_LONGEST_REMEMBERED = 4000


class Readers:
    """The pool. One analyst has at most half of the workers at once, so others find one."""

    def __init__(self, policy: Policy, checker: Checker, *, workers: int, seconds: float) -> None:
        self._setup = packed(Setup(policy, checker, 2 * seconds))
        self._size = workers
        self._seconds = seconds
        self._idle: asyncio.Queue[_Worker] = asyncio.Queue()
        self._all: set[_Worker] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._turns: dict[str, asyncio.Semaphore] = {}
        # What passed once passes again: policy and schema stay as they are. Each analyst's own
        # texts: how long another's text takes would tell whether somebody has asked it before.
        self._plans: OrderedDict[_Text, list[Decision]] = OrderedDict()
        self._compiled: OrderedDict[_Text, TableShape | None] = OrderedDict()

    def start(self) -> None:
        """Begin to start the workers; jobs wait for the first."""
        for _ in range(self._size):
            self._replace()

    async def stop(self) -> None:
        """End all workers at once."""
        for task in self._starting:
            task.cancel()
        self._starting.clear()
        workers, self._all = self._all, set()
        for worker in workers:
            await worker.kill()

    async def plans(self, analyst: str, sql: str) -> list[Decision]:
        """The statements of a text and what may happen to each."""
        known = self._plans.get((analyst, sql))
        if known is None:
            known = cast(list[Decision], await self._run(analyst, Plans(sql)))
            _remember(self._plans, (analyst, sql), known)
        return known

    async def check(self, analyst: str, sql: str) -> TableShape | None:
        """Whether the backend would refuse a text, by raising; else what it is answered with."""
        text = (analyst, sql)
        if text in self._compiled:
            return self._compiled[text]
        shape = cast(TableShape | None, await self._run(analyst, Compiles(sql)))
        _remember(self._compiled, text, shape)
        return shape

    async def sketch(self, analyst: str, sql: str) -> Sketch:
        """How a text is understood, or its refusal."""
        return cast(Sketch, await self._run(analyst, Sketches(sql)))

    async def write(self, analyst: str, job: Written) -> str:
        """The statement with its parameters written into it."""
        return cast(str, await self._run(analyst, job))

    async def _run(self, analyst: str, job: Job) -> object:
        turn = self._turns.setdefault(analyst, asyncio.Semaphore(max(1, self._size // 2)))
        async with turn:
            worker = await self._idle.get()
            answer = asyncio.ensure_future(worker.ask(packed(job)))
            try:
                done, _ = await asyncio.wait({answer}, timeout=self._seconds)
            except asyncio.CancelledError:
                task = asyncio.ensure_future(self._finish(worker, answer))
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)
                raise
            if not done or answer.exception() is not None:
                await self._give_up(worker, answer)
                raise _too_complex(self._seconds)
            self._idle.put_nowait(worker)
        result = answer.result()
        if result.problem is not None:
            raise result.problem
        if result.broken:
            raise refusal("syntax_error", "the statement cannot be read", hint="")
        return result.value

    async def _finish(self, worker: _Worker, answer: asyncio.Future[Done]) -> None:
        """Let an abandoned job end soon, or kill its worker."""
        done, _ = await asyncio.wait({answer}, timeout=_GRACE_SECONDS)
        if done and answer.exception() is None:
            self._idle.put_nowait(worker)
        else:
            await self._give_up(worker, answer)

    async def _give_up(self, worker: _Worker, answer: asyncio.Future[Done]) -> None:
        log("reader_killed", "warning")
        answer.cancel()
        self._all.discard(worker)
        self._replace()
        await worker.kill()

    def _replace(self) -> None:
        task = asyncio.ensure_future(self._started())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self) -> None:
        """Start one worker, and try again for as long as it takes."""
        while True:
            worker = None
            try:
                worker = await _Worker.start()
                self._all.add(worker)
                async with asyncio.timeout(_START_SECONDS):
                    await worker.ask(self._setup)
                self._idle.put_nowait(worker)
                return
            except (OSError, EOFError, TimeoutError) as problem:
                log("reader_failed", "error", reason=type(problem).__name__)
                if worker is not None:
                    self._all.discard(worker)
                    await worker.kill()
                await asyncio.sleep(_PAUSE_SECONDS)


class _Worker:
    """One process and its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> _Worker:
        # The same modules as here, and no Ctrl-C of its own.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", _PROGRAM),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
        )

    async def ask(self, data: bytes) -> Done:
        """Send a message and wait for its answer; EOFError or OSError if the process is gone."""
        incoming, outgoing = self._process.stdout, self._process.stdin
        if incoming is None or outgoing is None:
            raise EOFError
        outgoing.write(data)
        await outgoing.drain()
        (size,) = HEADER.unpack(await incoming.readexactly(HEADER.size))
        done = pickle.loads(await incoming.readexactly(size))
        if not isinstance(done, Done):
            raise EOFError
        return done

    async def kill(self) -> None:
        """End the process now."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


def _remember(known: OrderedDict[_Text, _Value], text: _Text, value: _Value) -> None:
    if len(text[1]) <= _LONGEST_REMEMBERED:
        known[text] = value
        if len(known) > _REMEMBERED:
            known.popitem(last=False)


def _too_complex(seconds: float) -> QueryRefused:
    return refusal(
        "too_complex", f"the statement takes longer than {seconds:g} s or too much memory to read"
    )
