"""Residuals with external comparisons: seconds of the sweep and of the domain on random intervals.

python -m benchmarks.comparisons [--rows 100000]
writes benchmarks/results/comparisons.md and comparisons.json.
Data: random spans and events, generated.

The residual {span} of ``span.low < event.at AND event.at < span.high`` takes the largest overlap of
all spans. Trying every value of the domain against every row would need rows² pairs.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import sqlrs
from benchmarks.common import write_results, write_rows

SQL = {
    "all rows together": "SELECT count(*) FROM span JOIN event ON TRUE "
    "WHERE span.low < event.at AND event.at <= span.high",
    "100 groups": "SELECT count(*) FROM span JOIN event USING (grp) "
    "WHERE span.low < event.at AND event.at <= span.high",
}
CHAIN = (
    "SELECT count(*) FROM event a JOIN event b USING (grp) JOIN event c USING (grp) "
    "JOIN event d USING (grp) WHERE a.at < b.at AND b.at < c.at AND c.at < d.at"
)
EVENTS = 200
TYPES: dict[str, Callable[[int], object]] = {
    "integer": lambda n: n,
    "double": lambda n: f"{n}.5",
    "date": lambda n: date(2000, 1, 1) + timedelta(days=n % 20_000),
    "timestamp": lambda n: datetime(2020, 1, 1) + timedelta(seconds=n),
    "text": lambda n: f"k{n:08}",
}


def main() -> None:
    """Time every type, print and keep the table."""
    parser = argparse.ArgumentParser(description="Seconds of external comparisons")
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    found: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, value in TYPES.items():
            files = _files(Path(folder), rows, value)
            with sqlrs.connect(tables=files) as database:
                for shape, sql in SQL.items():
                    found.append(_timed(database, f"{kind}, {shape}", sql, rows))
        files = _files(Path(folder), 1, TYPES["integer"])
        with sqlrs.connect(tables=files) as database:
            found.append(_timed(database, "integer, two external variables", CHAIN, EVENTS))
    lines = [
        "| values | rows | plan | slowest residual s | whole measurement s |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {f['name']} | {f['rows']:,} | {f['plan']} | {f['residual']:.2f} | {f['seconds']:.2f} |"
        for f in found
    ]
    write_results("comparisons", "\n".join(lines), found)


def _timed(database: sqlrs.Database, name: str, sql: str, rows: int) -> dict[str, object]:
    start = time.perf_counter()
    diagnosis = database.sensitivity(sql)
    seconds = time.perf_counter() - start
    external = [r for r in diagnosis.residuals if r.plan in ("sweep", "domain")]
    slowest = max(external, key=lambda r: r.seconds)
    return {
        "name": name,
        "rows": rows,
        "plan": slowest.plan,
        "residual": slowest.seconds,
        "seconds": seconds,
    }


def _files(folder: Path, rows: int, value: Callable[[int], object]) -> dict[str, str | Path]:
    rng = random.Random(17)

    def spans() -> list[tuple[object, ...]]:
        drawn = [(rng.randrange(1_000_000), rng.randrange(50_000)) for _ in range(rows)]
        return [(rng.randrange(100), value(at), value(at + long)) for at, long in drawn]

    events = [(rng.randrange(10), value(rng.randrange(1_000_000))) for _ in range(EVENTS)]
    return {
        "span": write_rows(folder / "span.csv", ("grp", "low", "high"), spans()),
        "event": write_rows(folder / "event.csv", ("grp", "at"), events),
    }


if __name__ == "__main__":
    main()
