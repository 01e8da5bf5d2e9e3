"""What all connections of one proxy share."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from sqlrs.errors import EngineFailed, SqlrsError
from sqlrs.proxy.backend import Backend
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.logs import log
from sqlrs.proxy.metrics import Metrics
from sqlrs.proxy.policy.decisions import Policy
from sqlrs.proxy.policy.gates import CountGate, HandshakeGate, RateGate, StepGate
from sqlrs.proxy.policy.guesses import GuessGate
from sqlrs.proxy.protocol.tls import Tls
from sqlrs.proxy.readers import Readers
from sqlrs.proxy.shadow.cluster import Shadow
from sqlrs.proxy.users import Users


class Cancellable(Protocol):
    """A connection, as a cancel request sees it."""

    def cancel(self, secret: bytes) -> None:
        """Stop what runs, if the secret is right."""
        ...


def failed() -> EngineFailed:
    """The one error for everything unexpected."""
    return EngineFailed("the count could not be answered")


@dataclass
class Service:
    """Configuration, backend, shadow, limits and counters."""

    config: ProxyConfig
    backend: Backend
    users: Users
    policy: Policy
    shadow: Shadow
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
        self.readers = Readers(
            self.policy,
            self.backend.checker(),
            workers=self.config.readers,
            seconds=limits.reading_seconds,
        )
        self.steps = StepGate()
        self._journals: dict[str, asyncio.Lock] = {}
        self._turns: dict[str, asyncio.Semaphore] = {}

    def backend_failed(self, analyst: str, problem: Exception) -> None:
        """Tell the operator. The text could quote data or, of a driver, name the server."""
        self.metrics.count("sqlrs_backend_failures_total")
        code = problem.code if isinstance(problem, SqlrsError) else failed().code
        log("backend_failed", "error", analyst=analyst, code=code, reason=type(problem).__name__)

    def journal(self, analyst: str) -> asyncio.Lock:
        """Who reads an analyst's history: a long one keeps a thread and the interpreter busy."""
        return self._journals.setdefault(analyst, asyncio.Lock())

    def turn(self, analyst: str) -> asyncio.Semaphore:
        """Whose turn it is among one analyst's counts: nobody takes all workers."""
        return self._turns.setdefault(analyst, asyncio.Semaphore(self.config.counts_per_analyst))
