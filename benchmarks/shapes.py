"""Shapes that no plan was tuned for: the plain COUNT(*) against the private answer.

python -m benchmarks.shapes [--limit 60] [--residual-limit 60] [--edges 30000] [--only uniform]
                              [--core]
writes benchmarks/results/shapes.md and shapes.json.
Data: random graphs and tables, generated.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import sqlrs
from benchmarks.common import (
    GRAPHS,
    Opened,
    geometric_mean,
    time_query,
    timing_table,
    write_graph,
    write_results,
    write_rows,
)
from sqlrs.graphs.patterns import pattern_sql

PATTERNS = ("path4", "path5", "cycle5", "star4", "clique4")
BOW_TIE = """
SELECT count(*) FROM edge e1, edge e2, edge e3, edge e4, edge e5, edge e6
WHERE e1.dst = e2.src AND e2.dst = e3.src AND e3.dst = e1.src
  AND e1.src = e4.src AND e4.dst = e5.src AND e5.dst = e6.src AND e6.dst = e4.src
"""
CHAIN = """
SELECT count(*) FROM customer c JOIN orders o ON c.id = o.customer JOIN item i ON o.id = i.orders
WHERE c.region < 3
"""
STAR_SCHEMA = """
SELECT count(*) FROM sale a JOIN sale b ON a.product = b.product AND a.store <> b.store
JOIN sale c ON a.store = c.store AND a.product <> c.product JOIN product p ON a.product = p.id
"""
WITHIN = """
SELECT count(*) FROM visit a JOIN visit b ON a.person = b.person AND a.at < b.at
"""


def graph_cases(folder: Path, edges: int) -> Iterator[tuple[str, Opened, str]]:
    """The patterns on random directed graphs."""
    for kind, make in GRAPHS.items():
        path = write_graph(folder / f"{kind.replace(' ', '_')}.txt", make(edges, seed=1))
        opened = partial(sqlrs.connect, tables={"edge": path})
        for name in PATTERNS:
            yield f"{name}, {kind}", opened, pattern_sql(name)
        yield f"bow-tie, {kind}", opened, BOW_TIE


def table_cases(folder: Path, rows: int) -> Iterator[tuple[str, Opened, str]]:
    """A chain of foreign keys, a star schema with two self-joins, a comparison of times."""
    rng = random.Random(2)
    tables = {
        "customer": write_rows(
            folder / "customer.csv",
            ["id", "region"],
            ((i, rng.randrange(10)) for i in range(rows // 10)),
        ),
        "orders": write_rows(
            folder / "orders.csv",
            ["id", "customer"],
            ((i, rng.randrange(rows // 10)) for i in range(rows)),
        ),
        "item": write_rows(
            folder / "item.csv",
            ["id", "orders"],
            ((i, rng.randrange(rows)) for i in range(4 * rows)),
        ),
        "product": write_rows(
            folder / "product.csv", ["id", "kind"], ((i, i % 7) for i in range(rows // 20))
        ),
        "sale": write_rows(
            folder / "sale.csv",
            ["id", "product", "store"],
            (
                (i, min(int(rng.paretovariate(0.8)), rows // 20) - 1, rng.randrange(rows // 50))
                for i in range(rows)
            ),
        ),
        "visit": write_rows(
            folder / "visit.csv",
            ["id", "person", "at"],
            (
                (i, int(rng.paretovariate(0.7)) % (rows // 10), rng.randrange(10**6))
                for i in range(rows)
            ),
        ),
    }
    keys = {name: ["id"] for name in tables}
    opened = partial(sqlrs.connect, tables=tables, keys=keys, public=["product"])
    yield "foreign-key chain", opened, CHAIN
    yield "star schema, two self-joins", opened, STAR_SCHEMA
    yield "times in order", opened, WITHIN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a plain form")
    parser.add_argument("--residual-limit", type=float, help="for the residuals, if another one")
    parser.add_argument("--edges", type=int, default=30_000)
    parser.add_argument("--only", default="", help="the cells whose title has these words")
    parser.add_argument(
        "--core", action="store_true", help="count what all cores did: the machine has other work"
    )
    options = parser.parse_args()
    residual_limit = options.residual_limit or options.limit
    clock = time.process_time if options.core else time.perf_counter
    timings = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for cases in (graph_cases(folder, options.edges), table_cases(folder, options.edges)):
            for title, opened, sql in cases:
                if options.only in title:
                    print(title, file=sys.stderr)
                    timings.append(
                        time_query(title, opened, sql, options.limit, residual_limit, clock)
                    )
    if not timings:
        parser.error(f"no cell has {options.only!r} in its title")
    mean = geometric_mean(t.private / (t.plain or options.limit) for t in timings)
    text = timing_table(timings, options.limit, residual_limit)
    again = geometric_mean(t.again / (t.plain or options.limit) for t in timings)
    text += f"\n\n- private answer / plain COUNT(*), geometric mean: {mean:.3f}"
    text += f"\n- a second one on the same rows: {again:.3f}"
    data = {
        "limit": options.limit,
        "residual_limit": residual_limit,
        "edges": options.edges,
        "core seconds": options.core,
        "cells": [asdict(t) for t in timings],
    }
    write_results("shapes", text, data)


if __name__ == "__main__":
    main()
