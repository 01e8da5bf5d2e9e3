"""Seconds for the plain COUNT(*), the private answer, and the residuals in plain SQL, 20 cells.

python -m benchmarks.speed [--graphs GrQc,HepTh] [--limit 150] [--residual-limit 300]
                             [--postgres]
writes benchmarks/results/speed.md and speed.json (speed_postgres.* with --postgres).
Data: five SNAP graphs (benchmarks/graphs.py says where from); without them, generated ones.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import sqlrs
from benchmarks.common import Opened, geometric_mean, time_query, timing_table, write_results
from benchmarks.graphs import PATTERNS, graphs
from sqlrs.graphs.patterns import pattern_sql


@contextmanager
def in_duckdb(path: Path) -> Iterator[Opened]:
    """The graph in memory."""
    yield lambda: sqlrs.connect(tables={"edge": path})


@contextmanager
def in_postgres(path: Path) -> Iterator[Opened]:
    """The graph in a server that ends with the block; no index but the key's."""
    import psycopg

    from tests.support.postgres_server import PostgresServer

    with PostgresServer() as server, server.database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE edge (src bigint, dst bigint, PRIMARY KEY (src, dst))")
            with connection.cursor().copy("COPY edge FROM STDIN") as copy:
                for a, b in edges_of(path):
                    copy.write_row((a, b))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE edge")
        yield lambda: sqlrs.connect(url)


def edges_of(path: Path) -> set[tuple[int, int]]:
    """The distinct edges of a SNAP file."""
    with gzip.open(path, "rt") as file:
        lines = (line.split() for line in file if not line.startswith("#"))
        return {(int(a), int(b)) for a, b in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", help="comma-separated names; all by default")
    parser.add_argument("--queries", default=",".join(PATTERNS))
    parser.add_argument("--limit", type=float, default=150.0, help="seconds for a plain form")
    parser.add_argument(
        "--residual-limit", type=float, help="seconds for the residuals in plain SQL, if others"
    )
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    residual_limit = options.residual_limit or options.limit
    opened = in_postgres if options.postgres else in_duckdb
    timings = []
    with graphs(options.graphs) as given:
        for name, path in given.files.items():
            with opened(path) as anew:
                for query in options.queries.split(","):
                    print(f"{query} on {name}", file=sys.stderr)
                    sql = pattern_sql(query)
                    title = f"{query}, {name}"
                    timings.append(time_query(title, anew, sql, options.limit, residual_limit))
    mean = geometric_mean(t.private / (t.plain or options.limit) for t in timings)
    slow = [t.private / (t.plain or options.limit) for t in timings if (t.plain or 11) > 10]
    summary = [
        f"{len(timings)} private answers together: {sum(t.private for t in timings):.1f} s",
        f"private answer / plain COUNT(*), geometric mean: {mean:.3f}",
        f"largest ratio: {max(t.private / (t.plain or options.limit) for t in timings):.2f}",
    ]
    costly = [
        (t.plain_residuals or residual_limit) / t.residuals
        for t in timings
        if (t.plain_residuals or 11) > 10
    ]
    if costly:
        summary.append(
            "residuals in plain SQL / what the private answer adds to its count, where the former "
            f"take over 10 s: at least {min(costly):.1f}"
        )
    if slow:
        summary.append(f"largest ratio where the plain count takes over 10 s: {max(slow):.3f}")
    table = timing_table(timings, options.limit, residual_limit)
    text = "\n".join([table, "", *(f"- {s}" for s in summary)])
    name = "speed_postgres" if options.postgres else "speed"
    limits = {"limit": options.limit, "residual_limit": residual_limit}
    write_results(f"{name}{given.suffix}", text, {**limits, "cells": [asdict(t) for t in timings]})


if __name__ == "__main__":
    main()
