"""What works but should not stay so: secrets that others can read, clear text in public."""

from __future__ import annotations

import ipaddress
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from sqlrs.catalog import View
from sqlrs.config import Config
from sqlrs.proxy.config import ProxyConfig

_OWN_KEY = "server.key"


def warnings(path: Path, data: Config, proxy: ProxyConfig) -> Iterator[str]:
    """Lines for the author of a configuration; none of them keeps the proxy from starting."""
    for what, file in _secrets(path, data, proxy):
        yield from _too_open(what, file)
    if proxy.tls == "allow" and not _is_local(proxy.listen):
        yield (
            f'tls = "allow" on {proxy.listen} lets clients send queries and answers in clear: '
            'set tls = "require"'
        )
    if proxy.status_port is not None and not _is_local(proxy.status_listen):
        yield f"status_listen = {proxy.status_listen} shows the analysts' names and budgets"


def not_offered(view: View) -> str:
    """Why analysts do not see a view that the role may read."""
    label = view.name if view.schema is None else f"{view.schema}.{view.name}"
    return (
        f"view {label} is not offered: the role cannot read every table behind it; "
        "GRANT SELECT on the columns of those tables that the view names"
    )


def _secrets(path: Path, data: Config, proxy: ProxyConfig) -> Iterator[tuple[str, Path]]:
    yield "the users", proxy.users
    if proxy.tls_key is not None:
        yield "the TLS key", proxy.tls_key
    elif proxy.state_directory is not None:
        yield "the TLS key", proxy.state_directory / _OWN_KEY
    if data.ledger is not None and data.ledger.startswith("sqlite:///"):
        yield "the ledger", Path(data.ledger.removeprefix("sqlite:///"))
    if any(_holds_password(url) for url in (data.db, data.ledger)):
        yield "the configuration, which holds a password,", path


def _too_open(what: str, file: Path) -> Iterator[str]:
    try:
        mode = file.stat().st_mode
    except OSError:
        return
    if mode & stat.S_IROTH:
        yield f"{what} in {file} can be read by every user of this machine: chmod 600 {file}"
    if mode & (stat.S_IWOTH | stat.S_IWGRP):
        yield f"{what} in {file} can be changed by others: chmod 600 {file}"


def _holds_password(url: str | None) -> bool:
    try:
        return url is not None and bool(urlsplit(url).password)
    except ValueError:
        return True


def _is_local(address: str) -> bool:
    """Whether only this machine reaches the address; a name is not looked up."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
