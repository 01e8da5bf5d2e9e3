"""Cost against size: seconds, the fitted exponent, the peak memory and where the time goes.

python -m benchmarks.scale [--sizes 10000,100000,1000000]
writes benchmarks/results/scale.md and scale.json. Every cell runs in a process of its own.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import sqlrs
from benchmarks.common import GRAPHS, write_graph, write_results
from sqlrs.epsilon import parse_epsilon
from sqlrs.measure import measure
from sqlrs.noise import Mechanism, PolyLaplace
from sqlrs.patterns import pattern_sql
from sqlrs.release import Compiled, wanted_by

QUERIES = ("triangle", "star3", "square")


@dataclass(frozen=True)
class Cell:
    """One query on one graph of one size."""

    graph: str
    query: str
    edges: int
    seconds: float
    count_share: float
    peak_megabytes: int


def run_cell(graph: str, query: str, edges: int, path: Path) -> Cell:
    """Count and residuals in this process."""
    mechanism: Mechanism = PolyLaplace(parse_epsilon("1"), 5)
    with sqlrs.connect(tables={"edge": path}) as database:
        compiled = Compiled.of(pattern_sql(query), database.catalog, database.settings)
        assert isinstance(compiled, Compiled)
        start = time.perf_counter()
        measured = measure(
            database.engine, compiled.residuals, wanted_by(mechanism, compiled.residuals)
        )
        seconds = time.perf_counter() - start
    count = measured.evaluations[0].seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Cell(graph, query, edges, round(seconds, 3), round(count / seconds, 3), peak)


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """The slope of log seconds against log edges, by least squares."""
    xs = [math.log(n) for n, _ in points]
    ys = [math.log(max(s, 1e-3)) for _, s in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((a - x) ** 2 for a in xs)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000,1000000", help="numbers of edges")
    options = parser.parse_args()
    sizes = [int(n) for n in options.sizes.split(",")]
    cells: list[Cell] = []
    alone = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        for graph, make in GRAPHS.items():
            for edges in sizes:
                path = write_graph(Path(name) / f"{graph.replace(' ', '_')}.txt", make(edges, 1))
                for query in QUERIES:
                    print(f"{query}, {graph}, {edges}", file=sys.stderr)
                    with alone.Pool(1) as pool:
                        cells.append(pool.apply(run_cell, (graph, query, edges, path)))
    lines = [
        "| graph | query | edges | seconds | of which the count | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {c.graph} | {c.query} | {c.edges:,} | {c.seconds:.2f} | {c.count_share:.0%} "
        f"| {c.peak_megabytes} |"
        for c in cells
    ]
    if len(sizes) > 1:
        lines += ["", "| graph | query | exponent |", "|---|---|---|"]
        for graph in GRAPHS:
            for query in QUERIES:
                points = [
                    (c.edges, c.seconds) for c in cells if (c.graph, c.query) == (graph, query)
                ]
                lines.append(f"| {graph} | {query} | {exponent(points):.2f} |")
    write_results("scale", "\n".join(lines), [asdict(c) for c in cells])


if __name__ == "__main__":
    main()
