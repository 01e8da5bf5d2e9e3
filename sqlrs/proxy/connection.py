"""One client from accept to close: carries out what the state machines ask for."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.proxy import effects
from sqlrs.proxy.answering import Steps
from sqlrs.proxy.backend import Cancellation, CountOutcome, Hold, TableOutcome
from sqlrs.proxy.count_in_flight import Counting
from sqlrs.proxy.greeting import Greeting, shadow_settings
from sqlrs.proxy.logs import log
from sqlrs.proxy.policy.decisions import Decision
from sqlrs.proxy.policy.gates import TooMany
from sqlrs.proxy.protocol.codec import Frame, FrameBuffer, ProtocolViolation, pack
from sqlrs.proxy.protocol.handshake import Authenticated
from sqlrs.proxy.protocol.messages import decode, session_limits
from sqlrs.proxy.protocol.replies import (
    Report,
    code_of,
    fatal,
    from_exception,
    key_data,
    parameter_status,
    ready,
    report_fields,
)
from sqlrs.proxy.protocol.wire import SlowClient, Wire
from sqlrs.proxy.reading_in_flight import ReadingInFlight
from sqlrs.proxy.service import Offered, Service, failed
from sqlrs.proxy.session import Session
from sqlrs.proxy.shadow.client import ShadowConnection, ShadowLost, ShadowRefused
from sqlrs.proxy.worker import Written

_Result = TypeVar("_Result")

# How many rows are forwarded before others have their turn: about a millisecond's work.
_ROWS_AT_ONCE = 64
# What the shadow can take in at once and still give to the client.
_MOST_CHARACTERS = 2_000_000
_CANCELLED = "canceling statement due to user request"
_SHUTTING_DOWN = "terminating connection: the proxy is shutting down"
_STOPPED = fatal("57P01", _SHUTTING_DOWN)
_CRASHED = fatal("57P02", "terminating connection: the catalog database is gone", "connect again")
_STARTING = ("57P03", "the catalog database is starting up: connect again in a moment")


class Connection:
    """Drives the handshake and then the session of one client."""

    def __init__(self, service: Service, wire: Wire) -> None:
        self._service = service
        self._wire = wire
        self._shadow: ShadowConnection | None = None
        self._offered: Offered = service.first
        self._counting: Counting[Any] | ReadingInFlight[Any] | None = None
        self._reading: asyncio.Task[Any] | None = None
        self._asking_shadow = False
        self._busy = False
        self._farewell: Report | None = None
        self._process = 0
        self._secret = b""
        self.analyst = ""
        wire.on_lost = self._lost

    async def run(self) -> None:
        """Serve the client until it leaves, breaks the protocol or must go."""
        report: Report | None = None
        try:
            client = await Greeting(self._service, self._wire).run()
            if client is not None:
                with self._service.sessions.enter(client.user):
                    await self._serve(client)
        except TooMany as problem:
            report = from_exception(problem).fatal()
        except ProtocolViolation as violation:
            report = fatal("08P01", str(violation))
        except ShadowLost:
            # A statement without its end: clients take replies and then an error for nonsense.
            self._wire.discard()
            report = _CRASHED
        except ShadowRefused as problem:
            report = fatal(problem.sqlstate, problem.message)
        except SqlrsError as problem:
            report = from_exception(problem).fatal()
        except (SlowClient, OSError, ssl.SSLError, TimeoutError):
            pass
        finally:
            self._end(report)

    def cancel(self, secret: bytes) -> None:
        """A cancel request with this key arrived for this connection."""
        if not hmac.compare_digest(secret, self._secret):
            return
        if self._counting is not None:
            self._counting.stop()
        elif self._reading is not None:
            self._reading.cancel()
        elif self._asking_shadow and self._shadow is not None:
            task = asyncio.ensure_future(self._shadow.cancel())
            task.add_done_callback(lambda done: done.exception())

    def leave(self, report: Report = _STOPPED) -> None:
        """End after what runs now, at once if nothing runs or a text is only read."""
        self._farewell = report
        if self._reading is not None:
            self._reading.cancel()
        if not self._busy:
            self._wire.wake()

    def shadow_ended(self, offered: Offered) -> None:
        """A shadow died: who has a session in it must connect again, a waiting client too."""
        if self._shadow is not None and self._offered is offered:
            self.leave(_CRASHED)

    def give_up(self) -> None:
        """Stop what runs: the time to finish it is over."""
        if self._counting is not None:
            self._counting.stop(_SHUTTING_DOWN, leaving=True)

    async def _serve(self, client: Authenticated) -> None:
        service, limits = self._service, self._service.config.limits
        self.analyst = client.user
        known = service.datasets.get(client.database)
        if known is None and client.database == client.user:
            known = service.first
        if known is None or known.shadow is None:
            raise ShadowRefused("3D000", f'database "{client.database}" does not exist')
        self._offered = known
        settings = shadow_settings(client, service.config.analyst(client.user))
        try:
            self._shadow = await known.shadow.connect(client.user, settings)
        except ShadowLost:
            raise ShadowRefused(*_STARTING) from None
        self._shadow.on_unasked = self._forward
        self._register(client.minor)
        for name, value in self._shadow.parameters.items():
            self._wire.write(parameter_status(name, value))
        self._wire.write(key_data(self._process, self._secret) + ready(b"I"))
        log("session_opened", "debug", analyst=client.user)
        session = Session(
            lambda: service.config.analyst(client.user),
            max_statement=limits.statement_characters,
            max_prepared=limits.prepared_statements,
            max_prepared_bytes=limits.prepared_bytes,
            unit=known.unit,
        )
        await self._converse(session, FrameBuffer(session_limits(limits.message_bytes)))

    def _register(self, minor: int) -> None:
        while not self._process or self._process in self._service.running:
            self._process = secrets.randbelow(2**31 - 1) + 1
        self._secret = secrets.token_bytes(32 if minor >= 2 else 4)
        self._service.running[self._process] = self

    async def _converse(self, session: Session, buffer: FrameBuffer) -> None:
        limits = self._service.config.limits
        while self._farewell is None:
            frame = buffer.next()
            if frame is None:
                try:
                    seconds = limits.message_seconds if len(buffer) else limits.idle_seconds
                    data = await self._wire.read(seconds)
                except TimeoutError:
                    self._farewell = fatal("57P05", "terminating connection: idle for too long")
                    return
                if self._wire.lost:
                    return
                buffer.feed(data)
                continue
            self._busy = True
            try:
                await self._service.steps.step(self.analyst)
                if session.ignores(frame):
                    continue
                if not await self._perform(session.handle(decode(frame))):
                    return
            finally:
                self._busy = False

    async def _perform(self, steps: Steps) -> bool:
        """Carry out the effects of one message; False when the client said good-bye."""
        try:
            effect = next(steps)
            while not isinstance(effect, effects.Hangup):
                try:
                    result = await self._carry_out(effect)
                except SqlrsError as problem:
                    effect = steps.throw(problem)
                else:
                    effect = steps.send(result)
        except StopIteration:
            return True
        return False

    async def _carry_out(self, effect: effects.Effect) -> Any:
        match effect:
            case effects.Reply(data):
                self._reply(data)
                await self._wire.drain(self._service.config.limits.send_seconds)
            case effects.Push():
                self._wire.flush()
            case effects.Ask(data, replies):
                return await self._ask(data, replies)
            case effects.Stream(data):
                return await self._stream(data)
            case effects.Examine(sql):
                return await self._examine(sql)
            case effects.Admit():
                if not self._service.rate.take(self.analyst):
                    raise TooMany("too many statements", hint="wait a moment and try again")
            case effects.Check(sql):
                return await self._read(self._offered.readers.check(self.analyst, sql))
            case effects.Inline(sql, types, values, formats):
                job = Written(sql, types, values, formats)
                return await self._read(self._offered.readers.write(self.analyst, job))
            case effects.Count():
                return await self._count(effect)
            case effects.Read(sql):
                return await self._read_public(sql)
            case effects.Explain():
                return await self._explain(effect)
            case effects.Remaining():
                return await self._backend(self._offered.backend.remaining, self.analyst)
            case effects.OwnBudget():
                return await self._backend(self._offered.backend.own_budget, self.analyst)
            case effects.History():
                rows = self._service.config.limits.history_rows
                async with self._service.journal(self.analyst):
                    return await self._backend(self._offered.backend.history, self.analyst, rows)
        return None

    def _reply(self, data: bytes) -> None:
        if data[:1] == b"E":
            fields = report_fields(data[5:])
            sqlstate = fields.get("C", "")
            self._service.metrics.count("sqlrs_errors_total", sqlstate=sqlstate)
            if self.analyst:
                self._service.refused(self._offered.name, code_of(fields))
            log("refused", analyst=self.analyst, sqlstate=sqlstate)
        self._wire.write(data)

    async def _examine(self, sql: str) -> list[Decision]:
        plans = await self._read(self._offered.readers.plans(self.analyst, sql))
        for plan in plans:
            self._service.metrics.count("sqlrs_statements_total", route=plan.route.value)
        return plans

    async def _read(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Let a worker read a text. Nothing is charged yet, so it may be given up at any time."""
        reading = asyncio.ensure_future(work)
        self._reading = reading
        try:
            return await reading
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is not None and own.cancelling():
                raise
            gone = self._farewell is not None
            raise Interrupted(_SHUTTING_DOWN if gone else _CANCELLED) from None
        finally:
            self._reading = None
            reading.cancel()

    async def _ask(self, data: bytes, replies: int) -> list[Frame]:
        shadow = self._the_shadow()
        return await self._within_time(shadow.exchange(data, replies))

    async def _stream(self, data: bytes) -> Frame:
        shadow = self._the_shadow()
        seconds = self._service.config.limits.send_seconds

        async def forward() -> Frame:
            rows = 0
            async for frame in shadow.stream(data):
                if frame.kind != b"D":
                    return frame
                if rows % _ROWS_AT_ONCE == 0:
                    await self._service.steps.step(self.analyst)
                rows += 1
                self._wire.write(pack(*frame))
                await self._wire.drain(seconds)
            raise ShadowLost

        return await self._within_time(forward())

    async def _within_time(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Let the shadow work; past its time it is told to stop and answers with an error."""
        shadow = self._the_shadow()
        self._asking_shadow = True
        task = asyncio.ensure_future(work)
        try:
            seconds = self._service.config.limits.catalog_seconds
            done, _ = await asyncio.wait({task}, timeout=seconds)
            if not done:
                await shadow.cancel()
            return await task
        finally:
            self._asking_shadow = False
            task.cancel()

    async def _backend(self, method: Any, *arguments: object) -> Any:
        try:
            return await asyncio.to_thread(method, *arguments)
        except Exception as problem:
            if not isinstance(problem, SqlrsError) or isinstance(problem, EngineFailed):
                self._service.backend_failed(self.analyst, problem)
            if isinstance(problem, SqlrsError):
                raise
            raise failed() from None

    async def _read_public(self, sql: str) -> Any:
        read, rows = self._offered.backend.read, self._service.config.limits.public_rows
        limits = {"rows": rows, "characters": _MOST_CHARACTERS}
        return await self._read_free(lambda cancel: read(sql, **limits, cancel=cancel))

    async def _explain(self, request: effects.Explain) -> Any:
        explain = self._offered.backend.explain
        sql, epsilon, bars = request.sql, request.epsilon, request.error_bars
        return await self._read_free(
            lambda cancel: explain(sql, epsilon=epsilon, error_bars=bars, cancel=cancel)
        )

    async def _read_free(self, work: Callable[[Cancellation], Any]) -> Any:
        self._counting = reading = ReadingInFlight(self._service, self.analyst, work)
        try:
            return await reading.run()
        finally:
            self._counting = None

    async def _count(self, request: effects.Count) -> Any:
        backend, sql, types = self._offered.backend, request.sql, request.types
        price = {
            "epsilon": request.epsilon,
            "error_bars": request.error_bars,
            "error": request.error,
        }

        def work(cancel: Cancellation, hold: Hold) -> CountOutcome | TableOutcome:
            how: dict[str, Any] = {**price, "cancel": cancel, "hold": hold}
            if types is None:
                return backend.count(self.analyst, sql, **how)
            return backend.table(self.analyst, sql, types=types, **how)

        self._counting = counting = Counting(self._service, self.analyst, work, request.timeout_ms)
        try:
            outcome = await counting.run()
        finally:
            self._counting = None
        self._service.metrics.count("sqlrs_answers_total", analyst=self.analyst)
        log(
            "answered",
            analyst=self.analyst,
            epsilon=f"{outcome.epsilon:f}",
            repeated=outcome.repeated,
        )
        return outcome

    def _forward(self, frame: Frame) -> None:
        if frame.kind in (b"N", b"S"):
            self._wire.write(pack(*frame))

    def _lost(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._counting is not None:
            self._counting.stop()

    def _the_shadow(self) -> ShadowConnection:
        if self._shadow is None:
            raise ShadowLost
        return self._shadow

    def _end(self, report: Report | None) -> None:
        report = report or self._farewell
        if report is not None:
            self._reply(report.encode())
        if self._shadow is not None:
            self._shadow.abort()
        self._service.running.pop(self._process, None)
        self._wire.close()
