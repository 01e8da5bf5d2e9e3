"""What all connections of one proxy share."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from sqlrs.proxy.backend import Backend
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.gates import CountGate, RateGate
from sqlrs.proxy.metrics import Metrics
from sqlrs.proxy.policy import Policy
from sqlrs.proxy.shadow import Shadow
from sqlrs.proxy.tls import Tls
from sqlrs.proxy.users import Users


class Cancellable(Protocol):
    """A connection, as a cancel request sees it."""

    def cancel(self, secret: bytes) -> None:
        """Stop what runs, if the secret is right."""
        ...


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
        self.handshakes = CountGate(limits.connections, limits.handshakes_per_address)
        self.rate = RateGate(limits.statements_per_second, limits.statement_burst)
        self.failures = RateGate(limits.failures_per_minute / 60, limits.failures_per_minute)
        self.counters = ThreadPoolExecutor(self.config.workers, thread_name_prefix="sqlrs-count")
        self._turns: dict[str, asyncio.Semaphore] = {}

    def turn(self, analyst: str) -> asyncio.Semaphore:
        """Whose turn it is among one analyst's counts: nobody takes all workers."""
        return self._turns.setdefault(analyst, asyncio.Semaphore(self.config.counts_per_analyst))
