"""The [proxy] part of sqlrs.toml: every key with its default, unknown keys refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import SqlrsError, UsageError
from sqlrs.ledger.base import add
from sqlrs.proxy.policy.price import AnalystLimits

_TLS = ("require", "allow", "off")


@dataclass(frozen=True)
class Limits:
    """[proxy.limits]: what one client, one address or all together may take. Times in seconds."""

    connections: int = 300
    connections_per_analyst: int = 60
    handshakes_per_address: int = 50
    message_bytes: int = 1_048_576
    statement_characters: int = 65_536
    prepared_statements: int = 500
    prepared_bytes: int = 1_048_576
    statements_per_second: float = 400.0
    statement_burst: int = 800
    failures_per_minute: int = 10
    failures_per_address: int = 200
    failures_in_all: int = 1000
    authentication_seconds: float = 10.0
    message_seconds: float = 30.0
    send_seconds: float = 30.0
    idle_seconds: float = 3600.0
    query_seconds: float = 600.0
    catalog_seconds: float = 30.0
    reading_seconds: float = 10.0
    history_rows: int = 1000
    shadow_megabytes: int = 64
    public_rows: int = 10_000


@dataclass(frozen=True)
class ProxyConfig:
    """[proxy]: where to listen, who may connect, and how answers are given."""

    listen: str = "127.0.0.1"
    port: int = 6432
    database: str = "sqlrs"
    users: Path = Path("users.toml")
    tls: str = "require"
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    status_listen: str = "127.0.0.1"
    status_port: int | None = None
    state_directory: Path | None = None
    postgres_binaries: Path | None = None
    workers: int = 4
    readers: int = 3
    counts_per_analyst: int = 2
    latency_grid: float = 0.0
    shutdown_seconds: float = 30.0
    log_level: str = "info"
    limits: Limits = field(default_factory=Limits)
    default: AnalystLimits = field(
        default_factory=lambda: AnalystLimits(Decimal("0.1"), Decimal(1))
    )
    analysts: Mapping[str, AnalystLimits] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> ProxyConfig:
        """The [proxy] section of the file; paths in it are relative to the file."""
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{path} is not TOML: {error}") from None
        section = document.get("proxy", {})
        if not isinstance(section, dict):
            raise UsageError(f"{path}: proxy must be a section", hint="write [proxy]")
        return cls.of(section, path.parent)

    @classmethod
    def of(cls, section: Mapping[str, Any], folder: Path) -> ProxyConfig:
        """The configuration that a section says, checked as a whole."""
        values = {"users": "users.toml", **section}
        values["limits"] = _build(Limits, "proxy.limits", _table(values, "limits"))
        default = _analyst("proxy.default", _table(values, "default"), cls().default)
        values["default"] = default
        values["analysts"] = {
            name: _analyst(
                f"proxy.analysts.{name}", _as_table(f"proxy.analysts.{name}", own), default
            )
            for name, own in _table(values, "analysts").items()
        }
        for name in ("users", "tls_certificate", "tls_key", "state_directory", "postgres_binaries"):
            if isinstance(values.get(name), str):
                values[name] = folder / values[name]
        config: ProxyConfig = _build(cls, "proxy", values)
        config.check()
        return config

    def check(self) -> None:
        """Refuse values that contradict each other or make no sense."""
        if self.tls not in _TLS:
            raise UsageError(f"proxy.tls is {self.tls!r}", hint=f"one of {', '.join(_TLS)}")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UsageError("proxy.tls_certificate and proxy.tls_key go together")
        if self.tls == "off" and self.listen not in ("127.0.0.1", "::1", "localhost"):
            raise UsageError(
                "without TLS the proxy listens on this machine only",
                hint='set proxy.listen = "127.0.0.1" or proxy.tls = "require"',
            )
        ports = {"port": self.port, "status_port": self.status_port}
        for name, port in ports.items():
            if port is not None and not 0 <= port <= 65535:
                raise UsageError(f"proxy.{name} is not a port")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise UsageError("proxy.log_level is debug, info, warning or error")
        if self.latency_grid < 0 or self.shutdown_seconds < 0:
            raise UsageError("proxy.latency_grid and proxy.shutdown_seconds are not negative")
        if self.readers < 2:
            raise UsageError("proxy.readers is at least 2, or one analyst could take them all")
        if self.workers < 1 or self.counts_per_analyst < 1:
            raise UsageError("proxy.workers and proxy.counts_per_analyst are at least 1")
        if not self.database or self.database.startswith("template") or self.database == "postgres":
            raise UsageError(f"proxy.database cannot be {self.database!r}")
        for entry in fields(self.limits):
            if getattr(self.limits, entry.name) <= 0:
                raise UsageError(f"proxy.limits.{entry.name} must be greater than zero")

    def analyst(self, name: str) -> AnalystLimits:
        """The limits of one analyst."""
        return self.analysts.get(name, self.default)


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    return _as_table(f"proxy.{name}", values.get(name, {}))


def _as_table(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{name} must be a section", hint=f"write [{name}]")
    return value


def _build(kind: type[Any], section: str, values: dict[str, Any]) -> Any:
    known = {entry.name: entry for entry in fields(kind)}
    for name in sorted(set(values) - set(known)):
        raise UsageError(
            f"[{section}] has no key {name!r}", hint=f"the keys are {', '.join(sorted(known))}"
        )
    return kind(
        **{
            name: _coerced(f"{section}.{name}", str(known[name].type), v)
            for name, v in values.items()
        }
    )


_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "int | None": (int,),
    "float": (int, float),
    "str": (str,),
    "Path": (Path,),
    "Path | None": (Path,),
}


def _coerced(name: str, kind: str, value: Any) -> Any:
    allowed = _KINDS.get(kind)
    if allowed is None:
        return value
    if not isinstance(value, allowed) or isinstance(value, bool):
        raise UsageError(f"{name} has a value of the wrong kind")
    return float(str(value)) if kind == "float" else value


def _analyst(section: str, values: dict[str, Any], fallback: AnalystLimits) -> AnalystLimits:
    known = ("epsilon", "max_epsilon", "error_bars")
    for name in sorted(set(values) - set(known)):
        raise UsageError(
            f"[{section}] has no key {name!r}", hint=f"the keys are {', '.join(known)}"
        )

    def read(name: str, otherwise: Decimal | None) -> Decimal | None:
        if name not in values:
            return otherwise
        try:
            return parse_epsilon(values[name])
        except SqlrsError as problem:
            raise UsageError(f"{section}.{name}: {problem.message}", hint=problem.hint) from None

    maximum = read("max_epsilon", fallback.max_epsilon) or fallback.max_epsilon
    epsilon = read("epsilon", min(fallback.default_epsilon, maximum)) or fallback.default_epsilon
    bars = read("error_bars", fallback.default_error_bars)
    if add(epsilon, bars or Decimal(0)) > maximum:
        raise UsageError(f"{section}: epsilon and error_bars together are at most max_epsilon")
    return AnalystLimits(epsilon, maximum, bars)
