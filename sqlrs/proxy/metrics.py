"""/healthz and /metrics on a port of their own: counts and budgets, nothing about the data."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal

_REQUEST_SECONDS = 5.0
_HELP = {
    "sqlrs_answers_total": ("counter", "Private counts answered."),
    "sqlrs_errors_total": ("counter", "Error responses by SQLSTATE."),
    "sqlrs_statements_total": ("counter", "Statements by who answers them."),
    "sqlrs_connections_total": ("counter", "Connections accepted."),
    "sqlrs_authentication_failures_total": ("counter", "Failed authentications."),
    "sqlrs_backend_failures_total": ("counter", "Times the data or the ledger failed."),
    "sqlrs_shadow_restarts_total": ("counter", "Times the shadow database was restarted."),
    "sqlrs_connections": ("gauge", "Authenticated connections now."),
    "sqlrs_shadow_up": ("gauge", "Whether the shadow database runs."),
    "sqlrs_backend_up": ("gauge", "Whether the data and the ledger answer."),
    "sqlrs_refusals_total": ("counter", "Refused statements, by dataset and code."),
    "sqlrs_budget_remaining": ("gauge", "Epsilon left, by analyst and dataset."),
    "sqlrs_dataset_cap": ("gauge", "The cap of a dataset's budget."),
    "sqlrs_dataset_spent": ("gauge", "Epsilon that a dataset was charged, over all time."),
    "sqlrs_dataset_remaining": ("gauge", "Epsilon left of a dataset's budget."),
}


Labels = tuple[tuple[str, str], ...]
"""Names with their values, in the order of the names."""


class Metrics:
    """Counters, and their text for Prometheus."""

    def __init__(self) -> None:
        self._counters: Counter[tuple[str, Labels]] = Counter()

    def count(self, name: str, **labels: str) -> None:
        """Add one."""
        if _HELP[name][0] != "counter":
            raise ValueError(f"{name} is no counter")
        self._counters[name, tuple(sorted(labels.items()))] += 1

    def value(self, name: str, **labels: str) -> int:
        """A counter as it stands."""
        return self._counters[name, tuple(sorted(labels.items()))]

    def counted(self, name: str) -> dict[Labels, int]:
        """A counter as it stands, by its labels."""
        return {labels: value for (one, labels), value in self._counters.items() if one == name}

    def text(self, gauges: Mapping[str, Mapping[Labels, Decimal | int]]) -> str:
        """All counters and the given gauges; a gauge maps its labels to its value."""
        lines = []
        for name, (kind, explanation) in _HELP.items():
            lines += [f"# HELP {name} {explanation}", f"# TYPE {name} {kind}"]
            for (counter, labels), value in sorted(self._counters.items()):
                if counter == name:
                    lines.append(f"{name}{_labels(labels)} {value}")
            for labels, gauge in sorted(gauges.get(name, {}).items()):
                lines.append(f"{name}{_labels(labels)} {gauge}")
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    # Names are checked when users are added; quotes and backslashes cannot occur in them.
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}"


class StatusServer:
    """A small HTTP server for GET /healthz and GET /metrics."""

    def __init__(
        self,
        problem: Callable[[], Awaitable[str | None]],
        metrics: Callable[[], Awaitable[str]],
    ) -> None:
        self._problem = problem
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._server is None:
            raise RuntimeError("not started")
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str, port: int) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=8192)

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
                status, body = await self._answer(request)
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                )
                writer.write(head.encode("ascii") + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: bytes) -> tuple[str, bytes]:
        match request.split(b" ")[:2]:
            case [b"GET", b"/healthz"]:
                problem = await self._problem()
                if problem is None:
                    return "200 OK", b"ok\n"
                return "503 Service Unavailable", f"{problem}\n".encode()
            case [b"GET", b"/metrics"]:
                return "200 OK", (await self._metrics()).encode("utf-8")
            case [b"GET", _]:
                return "404 Not Found", b"/healthz or /metrics\n"
        return "405 Method Not Allowed", b"only GET\n"
