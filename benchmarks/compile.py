"""How long a query takes to compile and to plan: CPU milliseconds of each phase, without any data.

Compiled is a query when its residuals, the recursion of its sensitivity and the residual SQL are
there. Plans of all residuals follow; a release plans those only that it evaluates. No cache is
warm, and the garbage collector is off.

python -m benchmarks.compile [--repeat 3] [--only NAME]
writes benchmarks/results/compile.md and compile.json.
Data: none.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeVar

from benchmarks.common import write_results
from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.compile import compile_query
from sqlrs.graphs.patterns import pattern_sql
from sqlrs.planning.choose import choose
from sqlrs.planning.join_order import cheapest
from sqlrs.query import Query
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sensitivity.refined import choose_method, reached
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights
from sqlrs.sql.plain import plain
from sqlrs.sql.write import statement_of

T = TypeVar("T")

DIALECT = "duckdb"
COMPILING = ("query", "recursion", "method", "residuals", "isomorphism", "residual SQL")
PLANNING = ("plans", "SQL of the plans")
PHASES = (*COMPILING, *PLANNING)
PATTERNS = ("square", "two_triangles", "path6", "cycle6", "clique4", "star6", "path10")
INTEGER = ColumnType(Family.INTEGER, "BIGINT")
WEIGHTS = Weights.from_beta(Fraction(1, 5))


def catalog(keyed: bool) -> Catalog:
    """A graph, as a set or as a bag of edges, and links t0, t1, … of a chain; all private."""
    columns = (Column("src", INTEGER), Column("dst", INTEGER))
    names = ("edge", *(f"t{i}" for i in range(12)))
    keys = [("src", "dst")] if keyed else []
    return Catalog(DIALECT, tuple(Table(n, columns).with_keys(keys) for n in names))


def joined(tables: list[str], ends: list[tuple[int, int]]) -> str:
    """A join of tables along the edges of a graph, without any inequality."""
    first: dict[int, str] = {}
    equal = []
    for i, pair in enumerate(ends):
        for vertex, end in zip(pair, ("src", "dst"), strict=True):
            place = f"e{i}.{end}"
            if vertex in first:
                equal.append(f"{first[vertex]} = {place}")
            first.setdefault(vertex, place)
    sources = ", ".join(f"{table} e{i}" for i, table in enumerate(tables))
    return f"SELECT count(*) FROM {sources} WHERE {' AND '.join(equal)}"


def cases() -> Iterator[tuple[str, str, bool]]:
    """Name, SQL, and whether the tables have keys."""
    for name in PATTERNS:
        yield f"{name}, all different", pattern_sql(name), True
    yield "path10, all different, bag", pattern_sql("path10"), False
    for length in (6, 10):
        tables = [f"t{i}" for i in range(length)]
        path = [(i, i + 1) for i in range(length)]
        yield f"chain of {length} tables", joined(tables, path), True
        yield f"chain of {length} tables, bag", joined(tables, path), False
    for kind, length in (("path", 10), ("star", 10), ("cycle", 10)):
        ends = {
            "path": [(i, i + 1) for i in range(length)],
            "star": [(0, i + 1) for i in range(length)],
            "cycle": [(i, (i + 1) % length) for i in range(length)],
        }[kind]
        for keyed in (True, False):
            name = f"{kind}{length}" if keyed else f"{kind}{length}, bag"
            yield name, joined(["edge"] * length, ends), keyed


def phases(sql: str, schema: Catalog) -> tuple[dict[str, float], int]:
    """CPU milliseconds of each phase, and the number of statements that would run."""
    spent: dict[str, float] = {}
    cheapest.cache_clear()

    def timed(phase: str, work: Callable[[], T]) -> T:
        start = time.process_time()
        result = work()
        spent[phase] = 1000 * (time.process_time() - start)
        return result

    def residuals_to_run() -> tuple[Residual, ...]:
        wanted = dict.fromkeys((*residuals.required, *reached(residuals)))
        return (residuals.of(query.everything), *residuals.undecided(wanted))

    compiled = timed("query", lambda: compile_query(sql, schema))
    assert isinstance(compiled, Query)
    query, residuals = compiled, Residuals(compiled)
    recursion = timed("recursion", lambda: compile_recursion(residuals))
    timed("method", lambda: choose_method(recursion, WEIGHTS))
    parts = timed("residuals", residuals_to_run)
    same = timed("isomorphism", lambda: representatives(parts))
    chosen = {r.members: r for r in same.values()}.values()
    timed("residual SQL", lambda: [plain(r).sql(dialect=DIALECT) for r in chosen])
    plans = timed("plans", lambda: [choose(r) for r in chosen])
    timed(
        "SQL of the plans",
        lambda: [statement_of(plan, DIALECT).sql(dialect=DIALECT) for plan in plans],
    )
    return spent, len(plans)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="the least of so many runs counts")
    parser.add_argument("--only", default="", help="a regular expression for names of queries")
    options = parser.parse_args()
    phases(pattern_sql("triangle"), catalog(True))
    gc.disable()
    lines = [
        f"| query | statements | {' | '.join(COMPILING)} | **compiled, ms** | "
        f"{' | '.join(PLANNING)} |",
        f"|---|---|{'---|' * len(PHASES)}---|",
    ]
    data = []
    for name, sql, keyed in cases():
        if not re.search(options.only, name):
            continue
        print(name, file=sys.stderr)
        runs = [phases(sql, catalog(keyed)) for _ in range(options.repeat)]
        least = {phase: min(spent[phase] for spent, _ in runs) for phase in PHASES}
        total = sum(least[phase] for phase in COMPILING)
        first, second = (
            " | ".join(f"{least[phase]:.1f}" for phase in some) for some in (COMPILING, PLANNING)
        )
        lines.append(f"| {name} | {runs[0][1]} | {first} | **{total:.0f}** | {second} |")
        data.append({"query": name, "statements": runs[0][1], "milliseconds": least})
    write_results("compile", "\n".join(lines), data)


if __name__ == "__main__":
    main()
