"""The proxy as a whole: listens, watches over the shadow, reloads users, stops in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from sqlrs.errors import SqlrsError, UsageError
from sqlrs.proxy.backend import Backend
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.connection import Connection
from sqlrs.proxy.health import Health
from sqlrs.proxy.logs import configure, log
from sqlrs.proxy.metrics import Labels, StatusServer
from sqlrs.proxy.protocol import tls
from sqlrs.proxy.protocol.replies import fatal
from sqlrs.proxy.protocol.wire import Wire
from sqlrs.proxy.service import Offered, Service, budget_gauges
from sqlrs.proxy.shadow.cluster import Shadow
from sqlrs.proxy.users import Users

_RESTART_SECONDS = 0.5
_LAST_SECONDS = 5.0


class Companion(Protocol):
    """What one process serves beside the proxy."""

    async def start(self) -> None:
        """Listen."""
        ...

    async def stop(self) -> None:
        """Stop listening."""
        ...


class Proxy:
    """A running proxy; ``start`` and ``stop`` belong to one event loop."""

    def __init__(
        self,
        config: ProxyConfig,
        backends: Mapping[str, Backend],
        *,
        config_path: Path | None = None,
    ) -> None:
        self._config_path = config_path
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.service = Service(
            config,
            {name: _offered(name, backend, config) for name, backend in backends.items()},
            Users(config.users),
            self._tls(config),
        )
        self._health = Health(self._shadows_alive, self._trouble)
        self._status = StatusServer(self._health.problem, self._metrics_text)
        self._server: asyncio.Server | None = None
        self._supervisors: list[asyncio.Task[None]] = []
        self._connections: dict[asyncio.Task[None], Connection] = {}

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        if self._server is None:
            raise RuntimeError("not started")
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def status_port(self) -> int:
        """The port of /healthz and /metrics."""
        return self._status.port

    async def start(self) -> None:
        """Take the ports, start the shadow, then listen."""
        config = self.service.config
        loop = asyncio.get_running_loop()
        with _ports_free("port", config.listen, config.port):
            self._server = await loop.create_server(
                lambda: Wire(self._accept),
                config.listen,
                config.port,
                backlog=512,
                start_serving=False,
            )
        if config.status_port is not None:
            with _ports_free("status_port", config.status_listen, config.status_port):
                await self._status.start(config.status_listen, config.status_port)
        for one in self.service.datasets.values():
            one.readers.start()
        for one, shadow in self._shadows():
            await shadow.start()
            self._supervisors.append(asyncio.create_task(self._supervise(one, shadow)))
        await self._server.start_serving()
        log("started", count=len(self.service.users.names()))

    async def stop(self) -> None:
        """Take no more clients, let what runs be settled, then end."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections.values()):
            connection.leave()
        await self._finish(self.service.config.shutdown_seconds)
        for connection in list(self._connections.values()):
            connection.give_up()
        await self._finish(_LAST_SECONDS)
        for task in list(self._connections):
            task.cancel()
        for supervisor in self._supervisors:
            supervisor.cancel()
        await self._status.stop()
        for _, shadow in self._shadows():
            await shadow.stop()
        for one in self.service.datasets.values():
            await one.readers.stop()
        self.service.counters.shutdown(wait=False, cancel_futures=True)
        if self._temporary is not None:
            self._temporary.cleanup()
        log("stopped")

    def reload(self) -> None:
        """Read the users and the analysts' limits again; what is broken stays as it was."""
        try:
            if self._config_path is not None:
                fresh = ProxyConfig.read(self._config_path)
                self.service.config = replace(
                    self.service.config, default=fresh.default, analysts=fresh.analysts
                )
            self.service.users.reload()
        except SqlrsError as problem:
            # About files of the operator's own: which one, and what is wrong with it.
            log("reload_failed", "error", code=problem.code, reason=problem.message)
            return
        names = set(self.service.users.names())
        for connection in list(self._connections.values()):
            if connection.analyst and connection.analyst not in names:
                connection.leave(fatal("57P01", "terminating connection: the user was removed"))
        log("reloaded", count=len(names))

    def _accept(self, wire: Wire) -> None:
        connection = Connection(self.service, wire)
        task = asyncio.ensure_future(connection.run())
        self._connections[task] = connection
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task, None)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log("connection_failed", "error", reason=type(problem).__name__)

    async def _finish(self, seconds: float) -> None:
        if self._connections:
            await asyncio.wait(set(self._connections), timeout=seconds)

    def _shadows(self) -> list[tuple[Offered, Shadow]]:
        offered = self.service.datasets.values()
        return [(one, one.shadow) for one in offered if one.shadow is not None]

    def _shadows_alive(self) -> bool:
        return all(shadow.alive for _, shadow in self._shadows())

    def _trouble(self) -> str | None:
        found = (one.backend.trouble() for one in self.service.datasets.values())
        return next((trouble for trouble in found if trouble is not None), None)

    async def _supervise(self, offered: Offered, shadow: Shadow) -> None:
        """Start the shadow again whenever it ends; until then clients are told to come back."""
        while True:
            await shadow.wait()
            log("shadow_ended", "error")
            for connection in list(self._connections.values()):
                connection.shadow_ended(offered)
            await shadow.stop()
            await asyncio.sleep(_RESTART_SECONDS)
            self.service.metrics.count("sqlrs_shadow_restarts_total")
            try:
                await shadow.start()
            except Exception as problem:
                # A full disk or a lack of processes may pass: the next round tries again.
                log("shadow_failed", "error", reason=type(problem).__name__)

    async def _metrics_text(self) -> str:
        answers = await self._health.backend_problem() is None
        gauges: dict[str, dict[Labels, Decimal | int]] = {
            "sqlrs_connections": {(): len(self.service.sessions)},
            "sqlrs_shadow_up": {(): int(self._shadows_alive())},
            "sqlrs_backend_up": {(): int(answers)},
        }
        for one in self.service.datasets.values():
            with contextlib.suppress(Exception):
                found = await asyncio.to_thread(budget_gauges, one, self.service.users.names())
                for name, values in found.items():
                    gauges.setdefault(name, {}).update(values)
        return self.service.metrics.text(gauges)

    def _tls(self, config: ProxyConfig) -> tls.Tls | None:
        if config.tls == "off":
            return None
        if config.tls_certificate is not None and config.tls_key is not None:
            return tls.load(config.tls_certificate, config.tls_key)
        if config.state_directory is not None:
            config.state_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return tls.self_signed(config.state_directory)
        self._temporary = tempfile.TemporaryDirectory(prefix="sqlrs-tls-")
        return tls.self_signed(Path(self._temporary.name))


def _offered(name: str, backend: Backend, config: ProxyConfig) -> Offered:
    shadow = Shadow(
        backend.schema(),
        database=name,
        connections=config.limits.connections,
        megabytes=config.limits.shadow_megabytes,
        binaries=config.postgres_binaries,
    )
    return Offered.of(name, backend, config, shadow)


@contextlib.contextmanager
def _ports_free(key: str, address: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        number = problem.errno or 0
        reason = os.strerror(number) if number > 0 else "no such address"
        raise UsageError(
            f"cannot listen on {address}:{port}: {reason}",
            hint=f"stop what uses it, or set another proxy.{key} (serve --port)",
        ) from None


def serve(
    config: ProxyConfig,
    backends: Mapping[str, Backend],
    *,
    config_path: Path | None = None,
    ready: Callable[[Proxy], None] = lambda proxy: None,
    beside: Callable[[Service], Companion] | None = None,
) -> None:
    """Run until SIGTERM or SIGINT; SIGHUP reloads the users. ``ready`` is told once it listens.

    ``beside`` makes what is served in the same process.
    """
    configure(config.log_level)
    logging.getLogger("sqlglot").disabled = True
    asyncio.run(_serve(config, backends, config_path, ready, beside))


async def _serve(
    config: ProxyConfig,
    backends: Mapping[str, Backend],
    config_path: Path | None,
    ready: Callable[[Proxy], None],
    beside: Callable[[Service], Companion] | None,
) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.set_exception_handler(lambda loop, context: log("unhandled", "error"))
    proxy = Proxy(config, backends, config_path=config_path)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, proxy.reload)
    companion = None if beside is None else beside(proxy.service)
    try:
        await proxy.start()
        if companion is not None:
            await companion.start()
        # What is loaded by now stays: looking through all of it again stops every client for long.
        gc.collect()
        gc.freeze()
        ready(proxy)
        await stop.wait()
    finally:
        if companion is not None:
            await companion.stop()
        await proxy.stop()
        # Python ends by looking through everything once more; what it may not look at counts as a
        # leak there, and DuckDB's driver prints a page about it.
        gc.unfreeze()
