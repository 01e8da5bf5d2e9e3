"""Runs a console on generated data in a thread of the test process, and logs in to it."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx

from sqlrs.console.config import ConsoleConfig
from sqlrs.console.desk import Desk
from sqlrs.console.http_server import ConsoleServer
from sqlrs.console.starting import console_service
from sqlrs.console.web_demo import DATASET, demo_data, demo_proxy
from sqlrs.database import Database
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.config import Epsilons
from sqlrs.proxy.protocol.tls import Tls
from tests.proxy import harness

PASSWORD = harness.PASSWORD
OWNER, ANALYST, OTHER = "olga", "ada", "bob"

TOKEN = re.compile(r'name="csrf" value="([^"]*)"')
PAIRS = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
WARDS = "SELECT ward, count(*) AS n FROM visit GROUP BY ward ORDER BY ward"


@dataclass
class Running:
    """A console that listens, and what it stands on."""

    desk: Desk
    server: ConsoleServer
    ledger: StoreLedger
    _clients: list[httpx.Client] = field(default_factory=list)

    @property
    def address(self) -> str:
        return self.server.address.rstrip("/")

    def client(self) -> httpx.Client:
        made = httpx.Client(base_url=self.address, timeout=60, verify=False)
        self._clients.append(made)
        return made

    def logged_in(self, user: str) -> Visitor:
        client = self.client()
        answer = client.post("/login", data={"name": user, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        return Visitor(client)

    def close(self) -> None:
        for client in self._clients:
            client.close()


class Visitor:
    """Somebody who is logged in and sends the forms of the pages."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def get(self, path: str, **how: Any) -> httpx.Response:
        return self.client.get(path, **how)

    @property
    def token(self) -> str:
        page = self.client.get("/", follow_redirects=True)
        found = TOKEN.search(page.text)
        assert found is not None
        return found[1]

    def post(self, path: str, **fields: str) -> httpx.Response:
        return self.client.post(path, data={"csrf": self.token, **fields})

    def run(self, sql: str, epsilon: str = "0.5", bars: str = "", price: str | None = None) -> str:
        """Run a query at its price; the page."""
        fields = {"sql": sql, "epsilon": epsilon, "bars": bars}
        if price is None:
            page = self.post("/confirm", **fields).text
            found = re.search(r'name="price" value="([^"]*)"', page)
            assert found is not None, page
            price = found[1]
        return self.post("/run", **fields, price=price).text


@contextmanager
def served(
    databases: Mapping[str, Database],
    folder: Path,
    *,
    config: ConsoleConfig | None = None,
    certificate: Tls | None = None,
    **changes: Any,
) -> Iterator[Running]:
    """A console over these databases, in a thread, until the block ends."""
    users = dict.fromkeys((OWNER, ANALYST, OTHER), PASSWORD)
    most = Epsilons(epsilon=Decimal("0.5"), max_epsilon=Decimal(20))
    proxy = replace(demo_proxy(folder, users), default=most, **changes)
    config = config or ConsoleConfig(port=0, tls="off", owners=(OWNER,))
    loop, started = asyncio.new_event_loop(), threading.Event()
    made: list[Running] = []

    async def start() -> None:
        service = console_service(databases, proxy)
        ledger = next(iter(databases.values())).ledger
        assert isinstance(ledger, StoreLedger)
        desk = Desk(service, databases, ledger, config, config.tls != "off")
        files = (None, None) if certificate is None else (certificate.certificate, certificate.key)
        server = ConsoleServer(desk, *files)
        for one in service.datasets.values():
            one.readers.start()
        await server.start()
        made.append(Running(desk, server, ledger))

    async def stop() -> None:
        await made[0].server.stop()
        for one in made[0].desk.service.datasets.values():
            await one.readers.stop()
        made[0].desk.service.counters.shutdown(wait=False, cancel_futures=True)

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(start())
        finally:
            started.set()
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(60) and made
    try:
        yield made[0]
    finally:
        made[0].close()
        asyncio.run_coroutine_threadsafe(stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextmanager
def demo_console(folder: Path, **changes: Any) -> Iterator[Running]:
    """The console of ``sqlrs demo --web`` with one analyst more and wider limits."""
    with demo_data(folder) as database, served({DATASET: database}, folder, **changes) as running:
        running.ledger.grant(analyst=ANALYST, epsilon=100, renew="never", by=OWNER)
        running.ledger.grant(analyst=OTHER, epsilon=1, by=OWNER)
        yield running
