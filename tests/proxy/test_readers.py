"""The workers that read SQL: deadlines, giving up, fairness, and results that survive the way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from sqlrs.errors import QueryRefused, Span
from sqlrs.proxy.policy.decisions import Route
from sqlrs.proxy.readers import Readers
from sqlrs.proxy.worker import Job, Written
from tests.proxy.slow import SlowChecker
from tests.proxy.test_policy import POLICY


@asynccontextmanager
async def reading(seconds: float = 30.0, workers: int = 2) -> AsyncIterator[Readers]:
    readers = Readers(POLICY, SlowChecker(), workers=workers, seconds=seconds)
    readers.start()
    try:
        # All have started: a test's times are those of its jobs.
        while readers._idle.qsize() < workers:
            await asyncio.sleep(0.01)
        yield readers
    finally:
        await readers.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(bounded())


def workers(readers: Readers) -> set[int]:
    return {worker._process.pid for worker in readers._all}


def test_plans_texts_and_refusals_come_back_whole() -> None:
    async def test() -> None:
        async with reading() as readers:
            plans = await readers.plans("alice", "SELECT 1; SELECT count(*) FROM edge")
            assert [plan.route for plan in plans] == [Route.SHADOW, Route.PROTECTED]
            assert plans[1].statement.text == "SELECT count(*) FROM edge"
            assert plans[1].statement.offset == 10
            job = Written("SELECT count(*) FROM edge WHERE src = $1", (20,), (b"7",), (0,))
            assert await readers.write("alice", job) == "SELECT COUNT(*) FROM edge WHERE src = 7"
            await readers.check("alice", "fine")
            with pytest.raises(QueryRefused) as caught:
                await readers.check("alice", "refused")
            problem = caught.value
            assert (problem.message, problem.hint, problem.code) == ("no", "try", "unsupported")
            assert (problem.span, problem.text) == (Span(1, 2), "refused")

    run(test)


def test_what_one_analyst_asked_is_read_anew_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with reading() as readers:
            read: list[str] = []
            run_job = readers._run

            async def counted(analyst: str, job: Job) -> object:
                read.append(analyst)
                return await run_job(analyst, job)

            monkeypatch.setattr(readers, "_run", counted)
            for analyst in ("alice", "alice", "eve"):
                await readers.check(analyst, "fine")
                await readers.plans(analyst, "SELECT 1")
            assert read == ["alice", "alice", "eve", "eve"]

    run(test)


def test_past_its_time_a_job_is_refused_and_its_worker_replaced() -> None:
    async def test() -> None:
        async with reading(seconds=0.5) as readers:
            before = workers(readers)
            with pytest.raises(QueryRefused) as caught:
                await readers.check("alice", "for ever")
            assert (caught.value.code, caught.value.sqlstate) == ("too_complex", "54001")
            assert len(before & workers(readers)) == 1
            for _ in range(4):
                await readers.check("alice", "fine")

    run(test)


@pytest.mark.parametrize("sql", ["memory", "death"])
def test_a_worker_without_memory_or_life_is_a_refusal(sql: str) -> None:
    async def test() -> None:
        async with reading() as readers:
            with pytest.raises(QueryRefused):
                await readers.check("alice", sql)
            await readers.check("alice", "fine")

    run(test)


def test_a_job_that_is_given_up_ends() -> None:
    async def test() -> None:
        async with reading(seconds=1000) as readers:
            before = workers(readers)
            job = asyncio.ensure_future(readers.check("alice", "for ever"))
            await asyncio.sleep(0.2)
            job.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job
            while before <= workers(readers):
                await asyncio.sleep(0.05)
            (gone,) = before - workers(readers)
            while _alive(gone):
                await asyncio.sleep(0.05)

    run(test)


def test_one_analyst_leaves_workers_to_the_others() -> None:
    async def test() -> None:
        async with reading(seconds=1000, workers=3) as readers:
            jobs = [asyncio.ensure_future(readers.check("eve", "for ever")) for _ in range(9)]
            await asyncio.sleep(0.2)
            start = time.monotonic()
            for number in range(20):
                await readers.plans("alice", f"SELECT {number}")
            # A guard against waiting for eve, not a measure.
            assert time.monotonic() - start < 20
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)

    run(test)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
