"""The noise at ε = 1 off the paper's graphs: a sparse random graph, a foreign key, TPC-H joins.

python -m benchmarks.noise
writes benchmarks/results/noise.md and noise.json.
Data: generated; that of TPC-H by tpchgen-cli, which the development tools install beside Python.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import sqlrs
from sqlrs.compiled import Compiled
from sqlrs.graphs.patterns import pattern_sql
from sqlrs.measuring.measure import measure
from sqlrs.noise import Cauchy, PolyLaplace, Weights
from sqlrs.owner.frequencies import maximum_frequency
from sqlrs.sensitivity.elastic import elastic_sensitivity, needed_frequencies
from sqlrs.sensitivity.refined import reached, refined_sensitivity, released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity

RESULTS = Path(__file__).parent / "results"
SEED = 7

TPCH_KEYS = {
    "customer": ["c_custkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
    "supplier": ["s_suppkey"],
    "nation": ["n_nationkey"],
}
TPCH = {
    "customer ⋈ orders": "SELECT count(*) FROM customer JOIN orders ON c_custkey = o_custkey",
    "customer ⋈ orders ⋈ lineitem": (
        "SELECT count(*) FROM customer JOIN orders ON c_custkey = o_custkey "
        "JOIN lineitem ON o_orderkey = l_orderkey"
    ),
    "customer ⋈ orders ⋈ lineitem ⋈ supplier, same nation": (
        "SELECT count(*) FROM customer JOIN orders ON c_custkey = o_custkey "
        "JOIN lineitem ON o_orderkey = l_orderkey JOIN supplier ON l_suppkey = s_suppkey "
        "JOIN nation ON s_nationkey = n_nationkey WHERE c_nationkey = s_nationkey"
    ),
    "two orders of one customer": (
        "SELECT count(*) FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey "
        "WHERE a.o_orderkey <> b.o_orderkey"
    ),
}


@dataclass(frozen=True)
class Row:
    """One query: its count, three sensitivities at β = 0.1, and the error of both mechanisms."""

    name: str
    private: str
    count: int
    residual: float
    refined: float
    elastic: float
    paper_error: float
    our_error: float


def evaluate(name: str, sql: str, database: sqlrs.Database) -> Row:
    """All measures of one query."""
    compiled = Compiled.of(sql, database.catalog, database.settings)
    assert isinstance(compiled, Compiled)
    residuals = compiled.residuals
    measured = measure(database.engine, residuals, (*residuals.required, *reached(residuals)))
    with database.engine.snapshot() as snapshot:
        frequencies = {
            f: snapshot.scalar(maximum_frequency(f)) for f in needed_frequencies(residuals.query)
        }
    weights = Weights.from_beta(Fraction(1, 10))
    ours, paper = PolyLaplace(Decimal(1), 5), Cauchy(Decimal(1))
    our_bound = released_sensitivity(residuals, measured.values, ours.weights).value
    paper_bound = residual_sensitivity(residuals, measured.values, paper.weights).value
    tables = {a.table.name for a in residuals.query.atoms if a.table.private}
    return Row(
        name=name,
        private=", ".join(sorted(tables)),
        count=measured.count,
        residual=float(residual_sensitivity(residuals, measured.values, weights).value),
        refined=float(refined_sensitivity(residuals, measured.values, weights).value),
        elastic=float(elastic_sensitivity(residuals.query, frequencies, weights).value),
        paper_error=float(paper_bound) * paper.standard_error_multiple(),
        our_error=float(our_bound) * ours.standard_error_multiple(),
    )


def sparse_graph(folder: Path) -> Iterator[Row]:
    """1,000 nodes and 10,000 directed edges, drawn uniformly."""
    draw = random.Random(SEED)
    edges: set[tuple[int, int]] = set()
    while len(edges) < 10_000:
        a, b = draw.randrange(1000), draw.randrange(1000)
        if a != b:
            edges.add((a, b))
    path = folder / "sparse.txt"
    path.write_text("".join(f"{a} {b}\n" for a, b in sorted(edges)))
    with sqlrs.connect(tables={"edge": path}) as database:
        yield evaluate("triangle, sparse random graph", pattern_sql("triangle"), database)


def foreign_key(folder: Path) -> Iterator[Row]:
    """1,000 customers, 10,000 orders, one customer with 435 of them."""
    draw = random.Random(SEED)
    owners = [0] * 435 + [draw.randrange(1, 1000) for _ in range(10_000 - 435)]
    (folder / "c.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(1000)))
    (folder / "o.csv").write_text(
        "id,customer\n" + "".join(f"{i},{c}\n" for i, c in enumerate(owners))
    )
    sql = "SELECT count(*) FROM c JOIN o ON c.id = o.customer"
    files = {"c": folder / "c.csv", "o": folder / "o.csv"}
    keys = {"c": ["id"], "o": ["id"]}
    for public in ([], ["o"], ["c"]):
        with sqlrs.connect(tables=files, keys=keys, public=public) as database:
            yield evaluate("customer ⋈ orders, skewed", sql, database)


def tpch(folder: Path) -> Iterator[Row]:
    """Joins over customer, orders, lineitem, supplier and nation at scale factor 0.01."""
    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent))
    if program is None:
        print("skipped: tpchgen-cli is not installed", file=sys.stderr)
        return
    subprocess.run([program, "parquet", "-s", "0.01", "--output-dir", folder], check=True)
    files = {name: folder / f"{name}.parquet" for name in TPCH_KEYS}
    with sqlrs.connect(tables=files, keys=TPCH_KEYS, public=["nation"]) as database:
        for name, sql in TPCH.items():
            yield evaluate(f"TPC-H: {name}", sql, database)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for generated data."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = [
        "| query | private | count | RS | RS+ | ES | error at ε = 1: paper | of the count | ours "
        "| of the count |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r.name} | {r.private} | {r.count:,} | {r.residual:,.1f} | {r.refined:,.1f} "
            f"| {r.elastic:,.1f} | {r.paper_error:,.1f} | {r.paper_error / r.count:.2%} "
            f"| {r.our_error:,.1f} | {r.our_error / r.count:.2%} |"
        )
    return "\n".join(lines)


def main() -> None:
    with scratch() as folder:
        rows = [*sparse_graph(folder), *foreign_key(folder), *tpch(folder)]
    text = table(rows)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "noise.md").write_text(text + "\n", encoding="utf-8")
    (RESULTS / "noise.json").write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
