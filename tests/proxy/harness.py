"""Runs a proxy in a thread of the test process, over TLS, on free ports."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlrs.proxy.backend import Backend
from sqlrs.proxy.config import Epsilons, ProxyConfig
from sqlrs.proxy.server import Proxy
from sqlrs.proxy.shadow.cluster import Shadow
from sqlrs.proxy.users import add_user

PASSWORD = "correct hörse"
ANALYSTS = ("alice", "bob", "carol")


class RunningProxy:
    """A proxy, its event loop and how to reach it."""

    def __init__(self, proxy: Proxy, loop: asyncio.AbstractEventLoop, folder: Path) -> None:
        self.proxy = proxy
        self._loop = loop
        self.folder = folder
        self.port = proxy.port
        self.certificate = folder / "state" / "server.crt"

    @property
    def status_port(self) -> int:
        return self.proxy.status_port

    @property
    def shadow(self) -> Shadow:
        shadow = self.proxy.service.first.shadow
        assert shadow is not None
        return shadow

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function, or what it awaits, on the proxy's loop."""

        async def run() -> Any:
            result = function()
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    def dsn(self, user: str = "alice", **more: str) -> str:
        options = {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": user,
            "password": PASSWORD,
            "dbname": "sqlrs",
            "sslmode": "require",
        } | more
        return " ".join(f"{name}='{value}'" for name, value in options.items())


@contextmanager
def running_proxy(
    backend: Backend | dict[str, Backend],
    folder: Path,
    users: tuple[str, ...] = ANALYSTS,
    **changes: Any,
) -> Iterator[RunningProxy]:
    """A proxy that listens until the block ends."""
    for user in users:
        add_user(folder / "users.toml", user, PASSWORD)
    config = replace(
        ProxyConfig(
            port=0,
            status_port=0,
            users=folder / "users.toml",
            state_directory=folder / "state",
            shutdown_seconds=5.0,
            readers=2,
            default=Epsilons(epsilon=Decimal("0.5"), max_epsilon=Decimal(2)),
        ),
        **changes,
    )
    config.check()
    backends = backend if isinstance(backend, dict) else {config.database: backend}
    proxy = Proxy(config, backends)
    loop = asyncio.new_event_loop()
    started = threading.Event()
    problems: list[BaseException] = []

    async def main() -> None:
        try:
            await proxy.start()
        except BaseException as problem:
            problems.append(problem)
        finally:
            started.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())
        if not problems:
            loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(60)
    if problems:
        raise problems[0]
    running = RunningProxy(proxy, loop, folder)
    try:
        yield running
    finally:
        asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
