"""The console as a server inside a running event loop: started, stopped, told its port."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from sqlrs.console.app import console_app
from sqlrs.console.desk import Desk
from sqlrs.console.impatient_http import ImpatientHttp
from sqlrs.errors import UsageError

_KEEP_ALIVE_SECONDS = 15
_STOP_SECONDS = 5


class _Server(uvicorn.Server):
    """Signals belong to the process that runs the console."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ConsoleServer:
    """A console that listens between ``start`` and ``stop``."""

    def __init__(self, desk: Desk, certificate: Path | None, key: Path | None) -> None:
        self._desk = desk
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None
        self._server = _Server(
            uvicorn.Config(
                console_app(desk),
                ssl_certfile=certificate,
                ssl_keyfile=key,
                http=ImpatientHttp,
                lifespan="off",
                log_config=None,
                access_log=False,
                # Whoever may set these headers would choose the address that guesses count for.
                proxy_headers=False,
                server_header=False,
                date_header=True,
                limit_concurrency=desk.service.config.limits.connections,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_STOP_SECONDS,
                ws="none",
            )
        )

    @property
    def address(self) -> str:
        """Where browsers find it."""
        if self._socket is None:
            raise RuntimeError("not started")
        host = self._desk.config.listen
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if self._desk.secure else "http"
        return f"{scheme}://{shown}:{self._socket.getsockname()[1]}/"

    async def start(self) -> None:
        """Take the port, then serve."""
        config = self._desk.config
        family = socket.AF_INET6 if ":" in config.listen else socket.AF_INET
        try:
            self._socket = socket.create_server((config.listen, config.port), family=family)
        except OSError as problem:
            reason = os.strerror(problem.errno) if problem.errno else "no such address"
            raise UsageError(
                f"cannot listen on {config.listen}:{config.port}: {reason}",
                hint="stop what uses it, or set another console.port",
            ) from None
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                raise UsageError("the console could not be started")
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Let running requests end for a few seconds."""
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=2 * _STOP_SECONDS)
