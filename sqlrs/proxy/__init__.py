"""The proxy: PostgreSQL clients connect to it and get private counts."""

from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.run import Embedded, check_config, embedded, serve, serve_file
from sqlrs.proxy.users import add_user, remove_user

__all__ = [
    "Embedded",
    "ProxyConfig",
    "add_user",
    "check_config",
    "embedded",
    "remove_user",
    "serve",
    "serve_file",
]
