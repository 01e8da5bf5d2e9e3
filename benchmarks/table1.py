"""The paper's Table 1, cell by cell: counts, SS, RS, ES and RS+ on five graphs, and Figure 2.

python -m benchmarks.table1 [--graphs GrQc,HepTh] [--figure]
writes benchmarks/results/table1.md, table1.json and, with --figure, figure2.svg.
Data: five SNAP graphs (benchmarks/graphs.py says where from); without them, generated ones.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Literal

import sqlrs
from benchmarks.common import RESULTS, write_results
from benchmarks.graphs import PATTERNS, graphs, printed
from sqlrs.compiled import Compiled
from sqlrs.graphs.patterns import pattern_sql
from sqlrs.measuring.measure import measure
from sqlrs.noise import Cauchy, PolyLaplace, Weights
from sqlrs.owner.diagnose import decimal_text
from sqlrs.owner.frequencies import maximum_frequency
from sqlrs.sensitivity.elastic import elastic_sensitivity, needed_frequencies
from sqlrs.sensitivity.refined import reached, refined_sensitivity, released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity

BETA = Fraction(1, 10)
FIGURE_BETAS = [Fraction(2**i, 20) for i in range(9)]  # 0.05 to 12.8


@dataclass(frozen=True)
class Cell:
    """One query on one graph."""

    query: str
    graph: str
    count: int
    seconds: float
    smooth: str | None
    residual: str
    refined: str
    elastic: str
    paper_error: float
    our_error: float
    figure: dict[str, dict[str, float]]


def measure_cell(query: str, name: str, path: Path, *, figure: bool) -> Cell:
    """Count, residuals and every sensitivity of one cell."""
    sql = pattern_sql(query)
    with sqlrs.connect(tables={"edge": path}) as database:
        compiled = Compiled.of(sql, database.catalog, database.settings)
        assert isinstance(compiled, Compiled)
        residuals = compiled.residuals
        start = time.perf_counter()
        measured = measure(database.engine, residuals, (*residuals.required, *reached(residuals)))
        seconds = time.perf_counter() - start
        with database.engine.snapshot() as snapshot:
            frequencies = {
                f: snapshot.scalar(maximum_frequency(f))
                for f in needed_frequencies(residuals.query)
            }
        smooth = None
        if query in ("triangle", "star3"):
            smooth = decimal_text(database.sensitivity(sql, "smooth", "0.1").value, 2)

    def at(beta: Fraction) -> dict[str, Fraction]:
        weights = Weights.from_beta(beta)
        return {
            "residual": residual_sensitivity(residuals, measured.values, weights).value,
            "refined": refined_sensitivity(residuals, measured.values, weights).value,
            "elastic": elastic_sensitivity(residuals.query, frequencies, weights).value,
        }

    ours = PolyLaplace(Decimal(1), 5)
    our_bound = released_sensitivity(residuals, measured.values, ours.weights).value
    paper = Cauchy(Decimal(1))
    paper_bound = residual_sensitivity(residuals, measured.values, paper.weights).value
    main = at(BETA)
    return Cell(
        query=query,
        graph=name,
        count=measured.count,
        seconds=round(seconds, 3),
        smooth=smooth,
        residual=decimal_text(main["residual"], 2),
        refined=decimal_text(main["refined"], 2),
        elastic=decimal_text(main["elastic"], 2),
        paper_error=float(paper_bound) * paper.standard_error_multiple(),
        our_error=float(our_bound) * ours.standard_error_multiple(),
        figure={
            str(float(b)): {k: float(v) for k, v in at(b).items()} for b in FIGURE_BETAS if figure
        },
    )


def agrees(found: str, printed: float) -> bool:
    """The paper rounds to integers, sometimes down: a value within one is the printed one."""
    return abs(float(found) - printed) < 1


def table(cells: list[Cell]) -> str:
    """The Markdown table, each value beside the paper's."""
    lines = [
        "| query | graph | count | SS | RS | ES | RS+ | RS / RS+ | error at ε = 1: paper | ours | "
        "ratio | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in cells:
        paper = printed(c.query, c.graph)
        marks = paper is None or {
            "count": c.count == paper["count"],
            "SS": c.smooth is None or agrees(c.smooth, paper["SS"]),
            "RS": agrees(c.residual, paper["RS"]),
            "ES": agrees(c.elastic, paper["ES"]),
        }

        def cell(name: str, value: str, ok: dict[str, bool] | bool = marks) -> str:
            return value if ok is True or (ok and ok[name]) else f"{value} **differs**"

        lines.append(
            f"| {c.query} | {c.graph} | {cell('count', f'{c.count:,}')} "
            f"| {cell('SS', c.smooth or '-')} | {cell('RS', c.residual)} | {cell('ES', c.elastic)} "
            f"| {c.refined} | {float(c.residual) / float(c.refined):.1f} "
            f"| {c.paper_error:,.0f} | {c.our_error:,.0f} | {c.paper_error / c.our_error:.1f} "
            f"| {c.seconds:.2f} |"
        )
    return "\n".join(lines)


def draw_figure(cells: list[Cell], path: Path) -> None:
    """Sensitivities against β, one panel for each query, as in the paper's Figure 2."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    queries = list(dict.fromkeys(c.query for c in cells))
    rows = (len(queries) + 1) // 2
    figure, axes = plt.subplots(
        rows, 2, figsize=(9, 3.4 * rows + 1), squeeze=False, layout="constrained"
    )
    styles: dict[str, Literal[":", "--", "-"]] = {"elastic": ":", "residual": "--", "refined": "-"}
    names = {"elastic": "ES, elastic", "residual": "RS, residual", "refined": "RS+, ours"}
    graphs = list(dict.fromkeys(c.graph for c in cells))
    for axis in axes.flat[len(queries) :]:
        axis.set_visible(False)
    for axis, query in zip(axes.flat, queries, strict=False):
        for c in (c for c in cells if c.query == query):
            for method, style in styles.items():
                betas = list(map(float, c.figure))
                axis.plot(
                    betas,
                    [v[method] for v in c.figure.values()],
                    style,
                    color=f"C{graphs.index(c.graph)}",
                    linewidth=1.8,
                )
        axis.set(xscale="log", yscale="log", title=query, xlabel="β", ylabel="sensitivity")
        axis.grid(alpha=0.3)
    # A colour for each graph and a style for each method: twenty lines need no twenty names.
    keys = [Line2D([], [], color=f"C{i}", label=graph) for i, graph in enumerate(graphs)]
    keys += [
        Line2D([], [], color="black", linestyle=style, label=names[method])
        for method, style in styles.items()
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=4, fontsize=9)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", help="comma-separated names; all by default")
    parser.add_argument("--figure", action="store_true", help="also draw figure2.svg")
    options = parser.parse_args()
    cells = []
    with graphs(options.graphs) as given:
        for query in PATTERNS:
            for name, path in given.files.items():
                print(f"{query} on {name}", file=sys.stderr)
                cells.append(measure_cell(query, name, path, figure=options.figure))
    write_results(f"table1{given.suffix}", table(cells), [asdict(c) for c in cells])
    total = sum(c.seconds for c in cells)
    print(f"\ncount and all residuals of {len(cells)} cells together: {total:.1f} s")
    if options.figure:
        draw_figure(cells, RESULTS / f"figure2{given.suffix}.svg")


if __name__ == "__main__":
    main()
