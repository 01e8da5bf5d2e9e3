"""What all connections of one proxy share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from decimal import Decimal
from typing import Protocol

from sqlrs.errors import EngineFailed, SqlrsError
from sqlrs.proxy.backend import Backend
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.logs import log
from sqlrs.proxy.metrics import Labels, Metrics
from sqlrs.proxy.policy.decisions import Policy
from sqlrs.proxy.policy.gates import CountGate, HandshakeGate, RateGate, StepGate
from sqlrs.proxy.policy.guesses import GuessGate
from sqlrs.proxy.protocol.tls import Tls
from sqlrs.proxy.readers import Readers
from sqlrs.proxy.shadow.cluster import Shadow
from sqlrs.proxy.users import Users
from sqlrs.records import dataclass


class Cancellable(Protocol):
    """A connection, as a cancel request sees it."""

    def cancel(self, secret: bytes) -> None:
        """Stop what runs, if the secret is right."""
        ...


def failed() -> EngineFailed:
    """The one error for everything unexpected."""
    return EngineFailed("the count could not be answered")


@dataclass(frozen=True)
class Offered:
    """One dataset: the database name of clients, who answers, who reads SQL, and the shadow.

    There is no shadow where no PostgreSQL client is served. ``unit``: who is protected.
    """

    name: str
    backend: Backend
    readers: Readers
    shadow: Shadow | None = None
    unit: str | None = None

    @classmethod
    def of(
        cls, name: str, backend: Backend, config: ProxyConfig, shadow: Shadow | None = None
    ) -> Offered:
        """A dataset with workers of its own."""
        schema = backend.schema()
        readers = Readers(
            Policy(schema),
            backend.checker(),
            workers=config.readers,
            seconds=config.limits.reading_seconds,
        )
        return cls(name, backend, readers, shadow, schema.unit)


def budget_gauges(
    offered: Offered, analysts: Sequence[str]
) -> dict[str, dict[Labels, Decimal | int]]:
    """What is left to each analyst of a dataset, and the dataset's own budget, for /metrics."""
    whole = ("dataset", offered.name)
    left: dict[Labels, Decimal | int] = {}
    for name in analysts:
        if (remaining := offered.backend.remaining(name)) is not None:
            left[("analyst", name), whole] = remaining
    gauges = {"sqlrs_budget_remaining": left}
    if (budget := offered.backend.dataset_budget()) is not None:
        gauges["sqlrs_dataset_cap"] = {(whole,): budget.cap}
        gauges["sqlrs_dataset_spent"] = {(whole,): budget.spent}
        gauges["sqlrs_dataset_remaining"] = {(whole,): budget.remaining}
    return gauges


@dataclass
class Service:
    """Configuration, datasets, users, limits and counters."""

    config: ProxyConfig
    datasets: Mapping[str, Offered]
    users: Users
    tls: Tls | None
    metrics: Metrics = field(default_factory=Metrics)
    running: dict[int, Cancellable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        limits = self.config.limits
        self.sessions = CountGate(limits.connections, limits.connections_per_analyst)
        self.handshakes = HandshakeGate(limits.connections, limits.handshakes_per_address)
        self.rate = RateGate(limits.statements_per_second, limits.statement_burst)
        self.guesses = GuessGate(
            limits.failures_per_minute,
            limits.failures_per_address,
            limits.failures_in_all,
        )
        self.counters = ThreadPoolExecutor(self.config.workers, thread_name_prefix="sqlrs-count")
        self.steps = StepGate()
        self._journals: dict[str, asyncio.Lock] = {}
        self._turns: dict[str, asyncio.Semaphore] = {}

    @property
    def first(self) -> Offered:
        """The dataset of [data]."""
        return next(iter(self.datasets.values()))

    def backend_failed(self, analyst: str, problem: Exception) -> None:
        """Tell the operator. The text could quote data or, of a driver, name the server."""
        self.metrics.count("sqlrs_backend_failures_total")
        code = problem.code if isinstance(problem, SqlrsError) else failed().code
        log("backend_failed", "error", analyst=analyst, code=code, reason=type(problem).__name__)

    def refused(self, dataset: str, code: str) -> None:
        """Count a refusal by its code, which is a word of ours or a SQLSTATE."""
        self.metrics.count("sqlrs_refusals_total", dataset=dataset, code=code)

    def journal(self, analyst: str) -> asyncio.Lock:
        """Who reads an analyst's history: a long one keeps a thread and the interpreter busy."""
        return self._journals.setdefault(analyst, asyncio.Lock())

    def turn(self, analyst: str) -> asyncio.Semaphore:
        """Whose turn it is among one analyst's counts: nobody takes all workers."""
        return self._turns.setdefault(analyst, asyncio.Semaphore(self.config.counts_per_analyst))
