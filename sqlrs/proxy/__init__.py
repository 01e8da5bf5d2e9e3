"""The proxy: PostgreSQL clients connect to it and get private counts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlrs.proxy.config import ProxyConfig
    from sqlrs.proxy.run import Embedded, check_config, embedded, serve
    from sqlrs.proxy.users import add_user, remove_user

__all__ = [
    "Embedded",
    "ProxyConfig",
    "add_user",
    "check_config",
    "embedded",
    "remove_user",
    "serve",
]

_HOMES = {
    "config": ("ProxyConfig",),
    "run": ("Embedded", "check_config", "embedded", "serve"),
    "users": ("add_user", "remove_user"),
}


def __getattr__(name: str) -> object:
    """Load a public name on first use: a worker starts often and needs none of the server."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"sqlrs.proxy.{home}"), name)
    raise AttributeError(f"module 'sqlrs.proxy' has no attribute {name!r}")
