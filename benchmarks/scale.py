"""Cost against size: seconds, the fitted exponent, the peak memory and where the time goes.

python -m benchmarks.scale [--sizes 10000,100000,1000000,10000000] [--limit 120]
                           [--graphs "uniform,power law"] [--queries triangle] [--keep]
writes benchmarks/results/scale.md and scale.json. Every cell runs in a process of its own.
Data: random graphs, generated.
"""

from __future__ import annotations

import argparse
import json
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
from benchmarks.common import GRAPHS, RESULTS, limited, seconds, write_graph, write_results
from sqlrs.compiled import Compiled
from sqlrs.graphs.patterns import pattern_sql
from sqlrs.measuring.measure import measure

QUERIES = ("triangle", "star3", "square")


@dataclass(frozen=True)
class Cell:
    """One query on one graph of one size."""

    graph: str
    query: str
    edges: int
    load_seconds: float
    count_seconds: float | None
    private_seconds: float | None
    core_seconds: float
    peak_megabytes: int
    limit: float


def run_cell(graph: str, query: str, edges: int, path: Path, limit: float) -> Cell:
    """The count alone, then the private answer, in this process."""
    sql = pattern_sql(query)
    start = time.perf_counter()
    with sqlrs.connect(tables={"edge": path}) as database:
        load = time.perf_counter() - start
        compiled = Compiled.of(sql, database.catalog, database.settings)
        assert isinstance(compiled, Compiled)
        residuals = compiled.residuals
        count = limited(lambda: measure(database.engine, residuals, ()), database, limit)
        private = None
        before = time.process_time()
        if count is not None:
            private = limited(lambda: database.count(sql, epsilon=1), database, limit)
        core = time.process_time() - before
    return Cell(graph, query, edges, load, count, private, core, peak_megabytes(), limit)


def with_kept(cells: Sequence[Cell]) -> list[Cell]:
    """The cells and those of the results before that were not run anew, in order."""
    before = [Cell(**cell) for cell in json.loads((RESULTS / "scale.json").read_text())]
    found = {(c.graph, c.query, c.edges): c for c in (*before, *cells)}
    order = [*GRAPHS], [*QUERIES]
    return sorted(
        found.values(), key=lambda c: (order[0].index(c.graph), c.edges, order[1].index(c.query))
    )


def peak_megabytes() -> int:
    """The most memory that this process held; what getrusage tells begins with the parent's."""
    status = Path("/proc/self/status")
    if status.is_file():
        held = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
        return int(held.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """The slope of log seconds against log edges, by least squares."""
    xs = [math.log(n) for n, _ in points]
    ys = [math.log(max(s, 1e-3)) for _, s in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((a - x) ** 2 for a in xs)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000,1000000,10000000", help="edges")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one answer")
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument(
        "--keep", action="store_true", help="keep the other cells of the results that are there"
    )
    options = parser.parse_args()
    graphs, queries = options.graphs.split(","), options.queries.split(",")
    sizes = [int(n) for n in options.sizes.split(",")]
    cells: list[Cell] = []
    alone = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        for graph in graphs:
            make = GRAPHS[graph]
            for edges in sizes:
                path = write_graph(Path(name) / f"{graph.replace(' ', '_')}.txt", make(edges, 1))
                for query in queries:
                    print(f"{query}, {graph}, {edges}", file=sys.stderr)
                    with alone.Pool(1) as pool:
                        cell = pool.apply(run_cell, (graph, query, edges, path, options.limit))
                    cells.append(cell)
    if options.keep:
        cells = with_kept(cells)
    lines = [
        "| graph | query | edges | load s | count alone s | private answer s | its core s "
        "| peak MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {c.graph} | {c.query} | {c.edges:,} | {c.load_seconds:.2f} "
        f"| {seconds(c.count_seconds, c.limit)} "
        f"| {seconds(c.private_seconds, c.limit)} | {c.core_seconds:.2f} "
        f"| {c.peak_megabytes} |"
        for c in cells
    ]
    lines += ["", "| graph | query | exponent |", "|---|---|---|"]
    for graph in dict.fromkeys(c.graph for c in cells):
        for query in dict.fromkeys(c.query for c in cells):
            points = [
                (c.edges, c.private_seconds)
                for c in cells
                if (c.graph, c.query) == (graph, query) and c.private_seconds is not None
            ]
            fitted = f"{exponent(points):.2f}" if len(points) > 1 else "–"
            lines.append(f"| {graph} | {query} | {fitted} |")
    write_results("scale", "\n".join(lines), [asdict(c) for c in cells])


if __name__ == "__main__":
    main()
