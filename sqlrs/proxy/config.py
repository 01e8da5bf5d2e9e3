"""The [proxy] part of sqlrs.toml: every key with its default and its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from sqlrs.config import Config
from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import UsageError
from sqlrs.inputs.sections import (
    FILE,
    SECONDS,
    TEXT,
    KeyKind,
    key,
    mapped,
    nested,
    one_of,
    read_file,
    sections_of,
    whole,
)
from sqlrs.ledger.base import add
from sqlrs.proxy.policy.price import AnalystLimits
from sqlrs.records import dataclass

_FIRST_LIMITS = AnalystLimits(Decimal("0.1"), Decimal(1))
_LOCAL = ("127.0.0.1", "::1", "localhost")

COUNT = whole(1)
PORT = whole(0, 65_535)


def _epsilon(name: str, value: object) -> Decimal:
    try:
        return parse_epsilon(value)  # type: ignore[arg-type]  # it refuses all others
    except UsageError as problem:
        raise UsageError(f"{name}: {problem.message}", hint=problem.hint) from None


EPSILON = KeyKind("ε, as a text or a number", _epsilon)


def _not_negative(name: str, value: object) -> float:
    return 0.0 if value == 0 and value is not False else SECONDS.read(name, value)


SECONDS_OR_NONE = KeyKind("seconds, or 0", _not_negative)


def _database(name: str, value: object) -> str:
    found = TEXT.read(name, value)
    if not found or found.startswith("template") or found == "postgres":
        raise UsageError(f"{name} cannot be {found!r}")
    return found


DATABASE = KeyKind("text", _database)


@dataclass(frozen=True)
class Limits:
    """[proxy.limits]: what one client, one address or all together may take. Times in seconds."""

    connections: int = key(COUNT, 300, "Authenticated connections in all.")
    connections_per_analyst: int = key(COUNT, 60, "Authenticated connections of one analyst.")
    handshakes_per_address: int = key(
        COUNT,
        50,
        "Connections of one address that are not authenticated yet; the oldest makes room.",
    )
    message_bytes: int = key(
        COUNT, 1_048_576, "The longest message; a longer one ends the connection before it is read."
    )
    statement_characters: int = key(COUNT, 65_536, "The longest statement.")
    prepared_statements: int = key(COUNT, 500, "Per connection, and as many portals.")
    prepared_bytes: int = key(COUNT, 1_048_576, "Per connection, the texts of both together.")
    statements_per_second: float = key(
        KeyKind("number above 0", SECONDS.read),
        400.0,
        "Per analyst, over time: each Query, Parse, Bind, Describe and Execute counts.",
    )
    statement_burst: int = key(COUNT, 800, "Per analyst, at once.")
    failures_per_minute: int = key(
        COUNT,
        10,
        "Wrong passwords for one user from one address; then this pair is refused for a while.",
    )
    failures_per_address: int = key(
        COUNT, 200, "Wrong passwords from one address (of IPv6: one /64) a minute, for all users."
    )
    failures_in_all: int = key(COUNT, 1000, "Wrong passwords a minute from everywhere.")
    authentication_seconds: float = key(SECONDS, 10.0, "From connect to authenticated.")
    message_seconds: float = key(SECONDS, 30.0, "From the first to the last byte of a message.")
    send_seconds: float = key(SECONDS, 30.0, "How long a client may leave its answers unread.")
    idle_seconds: float = key(SECONDS, 3600.0, "Between two messages.")
    query_seconds: float = key(SECONDS, 600.0, "Of a count; `statement_timeout` can shorten it.")
    catalog_seconds: float = key(SECONDS, 30.0, "Of a statement in the shadow.")
    reading_seconds: float = key(
        SECONDS, 10.0, "Of reading one text: parsing, deciding and compiling."
    )
    history_rows: int = key(
        COUNT,
        1000,
        "The newest rows in `sqlrs.history`, of each statement the first 2000 characters.",
    )
    shadow_megabytes: int = key(
        COUNT, 64, "Memory of one process of the shadow; there is one for each connection."
    )
    public_rows: int = key(COUNT, 10_000, "Rows of one reading of public tables.")


@dataclass(frozen=True)
class Epsilons:
    """[proxy.default] and [proxy.analysts.NAME]: what is left out is said by whoever stands above.

    Above an analyst stands [proxy.default], above that ε 0.1, at most 1, without error bars.
    """

    epsilon: Decimal | None = key(EPSILON, None, "The ε of a count where nothing was `SET`.")
    max_epsilon: Decimal | None = key(
        EPSILON, None, "The most that a count and its error bars cost together."
    )
    error_bars: Decimal | None = key(EPSILON, None, "The ε of error bars where nothing was `SET`.")

    def over(self, name: str, above: AnalystLimits) -> AnalystLimits:
        """The limits that these keys of the section ``name`` make of those above."""
        maximum = self.max_epsilon or above.max_epsilon
        epsilon = self.epsilon or min(above.default_epsilon, maximum)
        bars = self.error_bars or above.default_error_bars
        if add(epsilon, bars or Decimal(0)) > maximum:
            raise UsageError(f"{name}: epsilon and error_bars together are at most max_epsilon")
        return AnalystLimits(epsilon, maximum, bars)


@dataclass(frozen=True)
class ProxyConfig:
    """[proxy]: where to listen, who may connect, and how answers are given."""

    listen: str = key(TEXT, "127.0.0.1", "The address to listen on.")
    port: int = key(PORT, 6432, "The port for clients; 0 takes a free one.", "--port")
    database: str = key(
        DATABASE, "sqlrs", "The name that clients connect to (the user's own name works too)."
    )
    datasets: Mapping[str, Path] = key(
        mapped(FILE, "paths by database"),
        {},
        "More data: by the name that clients connect to, the file whose `[data]`, `[unit]`, "
        "`[domain]`, … describe it. Its answers are charged to the dataset of that name, in the "
        "same ledger.",
        relative=True,
    )
    users: Path = key(
        FILE,
        Path("users.toml"),
        "The file of SCRAM verifiers, written by `sqlrs user add`.",
        "--users",
        relative=True,
    )
    tls: str = key(
        one_of("require", "allow", "off"), "require", "`off` only on this machine's own address."
    )
    tls_certificate: Path | None = key(
        FILE, None, "A PEM file. Without it a self-signed certificate is made.", relative=True
    )
    tls_key: Path | None = key(FILE, None, "The key of `tls_certificate`, PEM.", relative=True)
    status_listen: str = key(TEXT, "127.0.0.1", "The address of `/healthz` and `/metrics`.")
    status_port: int | None = key(PORT, None, "Their port; without it there are none.")
    state_directory: Path | None = key(
        FILE,
        None,
        "Keeps the made certificate over restarts; without it each start makes a new one.",
        relative=True,
    )
    postgres_binaries: Path | None = key(
        FILE,
        None,
        "The folder of `postgres` and `initdb` for the shadow; found without it.",
        relative=True,
    )
    workers: int = key(COUNT, 4, "Counts that run at a time.")
    readers: int = key(
        whole(2), 3, "Processes that read SQL; one analyst has at most half of them at a time."
    )
    counts_per_analyst: int = key(COUNT, 2, "Counts of one analyst that run at a time; more wait.")
    latency_grid: float = key(
        SECONDS_OR_NONE, 0.0, "Answers come at multiples of it. 0 switches it off."
    )
    shutdown_seconds: float = key(
        SECONDS_OR_NONE, 30.0, "How long running counts may finish after SIGTERM."
    )
    log_level: str = key(
        one_of("debug", "info", "warning", "error"), "info", "The least that is logged."
    )
    limits: Limits = key(nested(Limits), Limits(), "What clients may take.", inner=Limits)
    default: Epsilons = key(
        nested(Epsilons),
        Epsilons(),
        "The ε of every analyst; without it 0.1, at most 1, and no error bars.",
        inner=Epsilons,
    )
    analysts: Mapping[str, Epsilons] = key(
        mapped(nested(Epsilons), "sections by name"),
        {},
        "The ε of one analyst; what is left out stands in `[proxy.default]`.",
        inner=Epsilons,
    )

    @classmethod
    def read(cls, path: Path) -> ProxyConfig:
        """The [proxy] section of the file, checked as a whole."""
        config = read_file(path, "proxy", cls, "console", *sections_of("data", Config))
        config.check()
        return config

    def check(self) -> None:
        """Refuse values that contradict each other, and ports that options of a command gave."""
        for name in ("port", "status_port"):
            if getattr(self, name) is not None:
                PORT.read(f"proxy.{name}", getattr(self, name))
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UsageError("proxy.tls_certificate and proxy.tls_key go together")
        if self.tls == "off" and self.listen not in _LOCAL:
            raise UsageError(
                "without TLS the proxy listens on this machine only",
                hint='set proxy.listen = "127.0.0.1" or proxy.tls = "require"',
            )
        for name in self.datasets:
            DATABASE.read("proxy.datasets", name)
            if name == self.database:
                raise UsageError(f"two datasets are called {name}")
        for name in ("", *self.analysts):
            self.analyst(name)

    def analyst(self, name: str) -> AnalystLimits:
        """The limits of one analyst."""
        common = self.default.over("proxy.default", _FIRST_LIMITS)
        return self.analysts.get(name, Epsilons()).over(f"proxy.analysts.{name}", common)
