"""The same counts through the library and through the proxy, in turns on one machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from sqlrs.config import Config
from tests.proxy.load import EPSILON, ProxyProcess, Told

_SQL = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.src = {} AND b.dst <> {}"


def overhead(proxy: ProxyProcess, analyst: str, samples: int) -> Told:
    """Seconds of fresh counts and of repeats, through either; each fresh count costs EPSILON."""
    told = Told()

    def timed(kind: str, ask: Callable[[str], Any], sql: str) -> None:
        began = time.perf_counter()
        ask(sql)
        told.seconds.setdefault(kind, []).append(time.perf_counter() - began)

    with (
        Config.read(proxy.folder / "sqlrs.toml").open() as database,
        psycopg.connect(proxy.dsn(analyst), autocommit=True) as connection,
    ):

        def library(sql: str) -> Any:
            return database.count(sql, EPSILON, analyst=analyst)

        def through_proxy(sql: str) -> Any:
            return connection.execute(sql).fetchone()

        for n in range(samples):
            timed("library fresh", library, _SQL.format(n, 1))
            timed("proxy fresh", through_proxy, _SQL.format(n, 2))
            for kind, ask in (("library repeated", library), ("proxy repeated", through_proxy)):
                timed(kind, ask, _SQL.format(n % 5, 1))
    return told
