"""From configuration to a running console: alone, or beside the proxy in one process."""

from __future__ import annotations

import asyncio
import logging
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from sqlrs.config import Config
from sqlrs.console.config import ConsoleConfig
from sqlrs.console.desk import Desk
from sqlrs.console.http_server import ConsoleServer
from sqlrs.database import Database
from sqlrs.errors import SqlrsError, UsageError
from sqlrs.inputs.sections import has_section
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.logs import configure, log
from sqlrs.proxy.protocol import tls
from sqlrs.proxy.run import opened
from sqlrs.proxy.service import Offered, Service
from sqlrs.proxy.users import Users

Ready = Callable[[ConsoleServer], None]


def configured(path: Path) -> ConsoleConfig | None:
    """The console that ``sqlrs serve`` serves too; None if the file asks for none."""
    if not has_section(path, "console"):
        return None
    config = ConsoleConfig.read(path)
    return config if config.enabled else None


def beside(
    config: ConsoleConfig, ready: Ready
) -> Callable[[Service, Mapping[str, Database]], ConsoleServer]:
    """What makes the console of a proxy's service."""

    def make(service: Service, databases: Mapping[str, Database]) -> ConsoleServer:
        return _Told(service, databases, config, ready)

    return make


def serve_console(data: Config, proxy: ProxyConfig, config: ConsoleConfig, *, ready: Ready) -> None:
    """Open the data and its ledger, then serve pages alone until told to stop."""
    proxy.check()
    config.check()
    configure(proxy.log_level)
    logging.getLogger("sqlglot").disabled = True
    with opened(data, proxy) as databases:
        asyncio.run(run_alone(databases, proxy, config, ready))


async def run_alone(
    databases: Mapping[str, Database], proxy: ProxyConfig, config: ConsoleConfig, ready: Ready
) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP reads the users again."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    service = console_service(databases, proxy)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, service)
    server = _Told(service, databases, config, ready)
    try:
        for one in service.datasets.values():
            one.readers.start()
        await server.start()
        await stop.wait()
    finally:
        await server.stop()
        for one in service.datasets.values():
            await one.readers.stop()
        service.counters.shutdown(wait=False, cancel_futures=True)
        log("stopped")


def console_service(databases: Mapping[str, Database], proxy: ProxyConfig) -> Service:
    """The proxy's limits and users over these databases, without a PostgreSQL for clients."""
    backends = {name: LibraryBackend(one) for name, one in databases.items()}
    offered = {name: Offered.of(name, one, proxy) for name, one in backends.items()}
    return Service(proxy, offered, Users(proxy.users), None)


class _Told(ConsoleServer):
    """A console that says where it listens, and removes the certificate that it made."""

    def __init__(
        self,
        service: Service,
        databases: Mapping[str, Database],
        config: ConsoleConfig,
        ready: Ready,
    ) -> None:
        self._ready = ready
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        secure = config.tls != "off"
        made = self._certificate(service) if secure else None
        desk = Desk(service, databases, _ledger(databases), config, secure)
        certificate, key = (None, None) if made is None else (made.certificate, made.key)
        super().__init__(desk, certificate, key)

    async def start(self) -> None:
        await super().start()
        self._ready(self)

    async def stop(self) -> None:
        await super().stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _certificate(self, service: Service) -> tls.Tls:
        """The proxy's own, or one that is made as the proxy makes it."""
        config = service.config
        if service.tls is not None:
            return service.tls
        if config.tls_certificate is not None and config.tls_key is not None:
            return tls.load(config.tls_certificate, config.tls_key)
        folder = config.state_directory
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="sqlrs-tls-")
            folder = Path(self._temporary.name)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return tls.self_signed(folder)


def _ledger(databases: Mapping[str, Database]) -> StoreLedger:
    ledgers = {id(one.ledger): one.ledger for one in databases.values()}
    (ledger,) = ledgers.values()
    if not isinstance(ledger, StoreLedger):
        raise UsageError(
            "the console needs a ledger that outlives it",
            hint='set ledger = "sqlite:///budget.db" in [data]',
        )
    return ledger


def _reload(service: Service) -> None:
    try:
        service.users.reload()
    except SqlrsError as problem:
        log("reload_failed", "error", code=problem.code, reason=problem.message)
        return
    log("reloaded", count=len(service.users.names()))
