"""From configuration to a running proxy: what the command line calls."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from sqlrs.catalog import View
from sqlrs.config import Config
from sqlrs.database import Database
from sqlrs.errors import UsageError
from sqlrs.ledger.base import parse_cap
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.exposed import views_without_tables
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.protocol import tls
from sqlrs.proxy.server import Companion, Proxy
from sqlrs.proxy.server import serve as serve_backend
from sqlrs.proxy.service import Service
from sqlrs.proxy.shadow.cluster import find_binaries
from sqlrs.proxy.users import add_user, read_users
from sqlrs.proxy.warnings import not_offered, warnings
from sqlrs.records import dataclass

_DEFAULT_BUDGET = "10"


@dataclass(frozen=True)
class Embedded:
    """Everything on this machine: the configurations, and the password if one was made."""

    data: Config
    proxy: ProxyConfig
    password: str | None


def serve(
    data: Config,
    proxy: ProxyConfig,
    *,
    config_path: Path | None = None,
    ready: Callable[[Proxy], None] = lambda proxy: None,
    beside: Callable[[Service, Mapping[str, Database]], Companion] | None = None,
) -> None:
    """Open the data and its ledger, then serve until the process is told to stop."""
    proxy.check()
    with opened(data, proxy) as databases:
        backends = {name: LibraryBackend(one) for name, one in databases.items()}
        with_data = None if beside is None else lambda service: beside(service, databases)
        serve_backend(proxy, backends, config_path=config_path, ready=ready, beside=with_data)


def datasets(data: Config, proxy: ProxyConfig) -> dict[str, Config]:
    """All data that is served, by the database names of clients; the budgets are in one ledger."""
    found = {proxy.database: data}
    for name, path in proxy.datasets.items():
        one = Config.read(path)
        if one.ledger not in (None, data.ledger):
            raise UsageError(
                f"{path} names another ledger",
                hint="what one analyst asks of all data together is charged in one: leave it out",
            )
        found[name] = replace(one, ledger=data.ledger, dataset=name, repeats=data.repeats)
    if data.dataset in proxy.datasets:
        raise UsageError(f"two datasets are called {data.dataset!r} in the ledger")
    return found


@contextmanager
def opened(data: Config, proxy: ProxyConfig) -> Iterator[dict[str, Database]]:
    """All data that is served, open, with one ledger between them."""
    if data.ledger is None:
        raise UsageError(
            "the proxy needs a ledger that outlives it",
            hint='set ledger = "sqlite:///budget.db" in [data]',
        )
    with ExitStack() as stack:
        ledger = data.open_ledger()
        yield {
            name: stack.enter_context(one.open(ledger))
            for name, one in datasets(data, proxy).items()
        }


def embedded(
    data: Config,
    user: str,
    *,
    state: Path,
    budget: str = _DEFAULT_BUDGET,
    port: int | None = None,
) -> Embedded:
    """A user, a ledger with a budget and a certificate, made in ``state`` where missing."""
    from sqlrs.ledger.store import StoreLedger

    users = state / "users.toml"
    proxy = ProxyConfig(users=users, state_directory=state)
    if port is not None:
        proxy = replace(proxy, port=port)
    # A mistake is told before a user is made whose password would be lost with it.
    proxy.check()
    parse_cap(budget)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = None
    if user not in read_users(users):
        password = secrets.token_urlsafe(18)
        add_user(users, user, password)
    if data.ledger is None:
        data = replace(data, ledger=f"sqlite:///{(state / 'budget.db').absolute()}")
        ledger = StoreLedger(data.ledger or "")
        if not ledger.budget(analyst=user).cap:
            ledger.grant(epsilon=budget, analyst=user)
        if not ledger.budget(dataset=data.dataset).cap:
            ledger.grant(epsilon=budget, dataset=data.dataset)
        ledger.close()
    return Embedded(data, proxy, password)


def check_config(path: Path) -> list[str]:
    """What a configuration file says, as lines for its author; a problem is a UsageError."""
    data, proxy = Config.read(path), ProxyConfig.read(path)
    if data.ledger is None:
        raise UsageError("[data] names no ledger", hint='set ledger = "sqlite:///budget.db"')
    users = read_users(proxy.users)
    if not users:
        raise UsageError(f"{proxy.users} names no user", hint="run sqlrs user add NAME")
    for name in sorted(set(proxy.analysts) - set(users)):
        raise UsageError(f"[proxy.analysts.{name}] is about a user that does not exist")
    if proxy.tls_certificate is not None and proxy.tls_key is not None:
        tls.load(proxy.tls_certificate, proxy.tls_key)
    binaries = find_binaries(proxy.postgres_binaries)
    lines = [
        f"listens on {proxy.listen}:{proxy.port}, TLS {proxy.tls}",
        f"shadow database from {binaries}",
    ]
    missing = list[View]()
    with opened(data, proxy) as databases:
        for name, database in databases.items():
            lines += [f"database {name}:"] if len(databases) > 1 else []
            lines += _described(database, users, proxy)
            missing += views_without_tables(database.catalog)
    told = [*warnings(path, data, proxy), *map(not_offered, missing)]
    return lines + [f"warning: {line}" for line in told]


def _described(database: Database, users: Iterable[str], proxy: ProxyConfig) -> list[str]:
    """What is served of one dataset, and to whom."""
    catalog = database.catalog
    schema = LibraryBackend(database).schema()
    private = [table.label for table in catalog.tables if table.private]
    lines = [
        f"exposes {', '.join(table.name for table in schema.relations)}",
        f"private are {', '.join(private) or 'none'}",
        "protects one row of them"
        if catalog.unit is None
        else f"protects one unit of {catalog.unit.name}, with all its rows",
    ]
    for user in sorted(users):
        limits, rest = proxy.analyst(user), database.ledger.remaining(user, database.dataset)
        lines.append(
            f"{user}: epsilon {limits.default_epsilon:f}, at most {limits.max_epsilon:f}, "
            f"{'no limit' if rest is None else f'{rest:f} left'}"
        )
    return lines
