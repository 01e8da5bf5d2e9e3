"""Private answers on Spark against the plain COUNT(*) on the same Spark: time, exchanges, skew.

python -m benchmarks.spark [--parts graphs,tpch,skew] [--threads 2] [--graphs GrQc,HepTh]
                           [--queries triangle,star3] [--cases Q3,Q12] [--tables FOLDER]
                           [--scale 1] [--edges 10000000] [--memory 2g] [--runs 2] [--keep]
                           [--limit 120] [--private-first] [--workers 2] [--in-spark]
writes benchmarks/results/spark_PART.md and .json for each part; with --keep, what is not measured
now stays as it was measured before. Needs Java 17.
Data: five SNAP graphs (benchmarks/graphs.py says where from), without them generated ones; TPC-H
(tpchgen-cli, or a folder with a Parquet file of each table); a random power-law graph, generated.

All times are of the fastest of --runs runs: the first compiles. No statement runs longer than
--limit seconds; what does not end is shown as such. Its tasks may go on all the same, so where a
plain count is not expected to end, measure the private answer first (--private-first). CPU seconds,
which other work on the machine hardly changes, are those of the whole process (driver, tasks,
Java's compiler, Python) and of Spark's tasks alone. With --workers, which are one core each of a
cluster on loopback, the process is the driver alone. With --in-spark no table is fetched and joined
in Python's process: that is how larger tables are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

import sqlrs
from benchmarks.common import RESULTS, geometric_mean, write_results
from benchmarks.graphs import PATTERNS, graphs
from benchmarks.relational_queries import KEYS, PUBLIC, TPCH
from benchmarks.spark_work import SparkBooks, SparkWork
from benchmarks.tpch import KEPT, generated
from sqlrs.database import Database
from sqlrs.errors import EngineFailed
from sqlrs.graphs.patterns import pattern_sql
from tests.support.spark import why_not
from tests.support.spark_cluster import standalone

# Those that are single counts; the others have NOT EXISTS.
CASES = tuple(one.name for one in TPCH if "NOT EXISTS" not in one.sql)
_LONG = 90.0


@dataclass(frozen=True)
class Pair:
    """One query: the plain count and the private answer."""

    name: str
    plain: SparkWork
    private: SparkWork

    @property
    def ratio(self) -> float:
        """The private answer as a multiple of the plain count, in seconds."""
        return self.private.seconds / self.plain.seconds

    @property
    def ended(self) -> bool:
        """Whether both came to an end within the limit."""
        return self.plain.ended and self.private.ended

    @property
    def process_ratio(self) -> float:
        """The same in the processor's time; 0 where it is unknown."""
        used = self.plain.process_seconds
        return self.private.process_seconds / used if used else 0.0


@contextmanager
def cluster(workers: int, memory: str) -> Iterator[dict[str, str]]:
    """The settings of an application on a master with workers of one core each, on loopback.

    Nothing without workers.
    """
    if not workers:
        yield {}
        return
    megabytes = int(memory.removesuffix("g")) * 1024
    with (
        tempfile.TemporaryDirectory() as folder,
        standalone(Path(folder), workers, megabytes=megabytes + 400) as running,
    ):
        os.environ.update(running.environment)
        yield {
            "spark.master": running.url,
            "spark.executor.memory": memory,
            "spark.sql.shuffle.partitions": "200",
        }


@contextmanager
def application(threads: int, memory: str, further: Mapping[str, str]) -> Iterator[Any]:
    """Spark in this process, as quiet as one that sqlrs starts; or where ``further`` says."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": f"local[{threads}]",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedStages": "100000",
        "spark.ui.retainedTasks": "1000000",
        "spark.log.level": "OFF",
        **further,
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def compared(
    name: str, database: Database, session: Any, sql: str, options: argparse.Namespace
) -> Pair:
    """Both ways on one open database."""
    books = SparkBooks(session)
    statement = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(statement, exp.Expression)

    def plain() -> None:
        with database.engine.snapshot() as snapshot:
            snapshot.rows(statement)

    # A second answer at the same ε would come from the ledger.
    epsilons = (f"1.{n:02}" for n in range(options.runs))
    ways = {"plain": plain, "private": lambda: database.count(sql, epsilon=next(epsilons))}
    found = {}
    for way in sorted(ways, reverse=options.private_first):
        print(f"{name}: {way}", file=sys.stderr)
        found[way] = _fastest(books, ways[way], options.runs)
    return Pair(name, **found)


def connected(
    session: Any,
    files: Mapping[str, Path],
    options: argparse.Namespace,
    keys: Mapping[str, list[str]] | None = None,
) -> Database:
    """The files as tables."""
    settings = sqlrs.Settings(fetch_limit=0) if options.in_spark else sqlrs.Settings()
    return sqlrs.connect(
        session,
        tables=files,
        keys=keys,
        public=[name for name in PUBLIC if name in files],
        timeout=options.limit,
        settings=settings,
    )


def load(database: Database) -> None:
    """Parse the edges, which later statements find parsed."""
    with database.engine.snapshot() as snapshot:
        snapshot.rows(exp.select(exp.Count(this=exp.Star())).from_("edge"))


def _fastest(books: SparkBooks, work: Callable[[], object], runs: int) -> SparkWork:
    found = [books.observed(work, _ended)]
    while len(found) < runs and found[-1].ended and found[-1].seconds <= _LONG:
        found.append(books.observed(work, _ended))
    return min(found, key=lambda one: one.seconds)


def _ended(work: Callable[[], object]) -> bool:
    """Whether it ends within the limit of a statement."""
    try:
        work()
    except EngineFailed as failed:
        if failed.code != "timeout":
            raise
        return False
    return True


def of_graphs(session: Any, options: argparse.Namespace) -> Iterator[Pair]:
    """The cells of the paper's graphs."""
    with graphs(options.graphs) as given:
        for name, path in given.files.items():
            with connected(session, {"edge": path}, options) as database:
                load(database)
                for query in options.queries.split(","):
                    title = f"{query}, {name}"
                    yield compared(title, database, session, pattern_sql(query), options)


def of_tpch(session: Any, options: argparse.Namespace) -> Iterator[Pair]:
    """TPC-H's joins."""
    folder = options.tables or generated(options.scale, KEYS, KEPT / f"tpch{options.scale}")
    cases = [one for one in TPCH if one.name in options.cases.split(",")]
    # Once for all: the keys are checked when a database is opened.
    names = sorted({name for case in cases for name in case.tables(KEYS)})
    files = {name: Path(folder, f"{name}.parquet") for name in names}
    keys = {name: KEYS[name] for name in names}
    with connected(session, files, options, keys) as database:
        for case in cases:
            title = f"TPC-H {options.scale}, {case.name}"
            yield compared(title, database, session, case.sql, options)


def of_power_law(session: Any, options: argparse.Namespace) -> Iterator[Pair]:
    """A graph with hubs."""
    path = power_law(options.edges)
    with connected(session, {"edge": path}, options) as database:
        for query in options.skewed.split(","):
            title = f"{query}, power law, {options.edges:,} edges"
            yield compared(title, database, session, pattern_sql(query), options)


def power_law(edges: int) -> Path:
    """A Parquet file of directed edges, ten a vertex; degrees fall with rank to the power of 0.6.

    So the largest of 10⁷ edges is near 40,000, as in a network of acquaintances.
    """
    path = KEPT / f"power_law_{edges}.parquet"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        text = """COPY (
            SELECT DISTINCT floor($vertices * power(random(), 2.5))::BIGINT AS src,
                floor($vertices * power(random(), 2.5))::BIGINT AS dst
            FROM range($edges)
        ) TO $path (FORMAT parquet)"""
        half = path.with_suffix(".part")
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1; SELECT setseed(0.5)")
            given = {"vertices": edges // 10, "edges": edges, "path": str(half)}
            connection.execute(text, given)
        half.rename(path)
    return path


PARTS = {"graphs": of_graphs, "tpch": of_tpch, "skew": of_power_law}


def table(pairs: list[Pair]) -> str:
    """Seconds, CPU seconds of tasks, stages, and bytes that were exchanged."""
    lines = [
        "| query | plain COUNT(*) s | private s | ratio | CPU s of the process, plain | private "
        "| ratio | of tasks, plain | private "
        "| stages, plain | private | exchanged MB, plain | private "
        "| largest / median task, plain | private |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in pairs:
        a, b = one.plain, one.private
        lines.append(
            f"| {one.name} | {_seconds(a)} | {_seconds(b)} | {_ratio(one)} "
            f"| {_known(a.process_seconds)} | {_known(b.process_seconds)} "
            f"| {_known(one.process_ratio if one.ended else 0.0)} "
            f"| {a.cpu_seconds:.2f} | {b.cpu_seconds:.2f} | {a.stages} | {b.stages} "
            f"| {a.shuffle_bytes / 1e6:.2f} | {b.shuffle_bytes / 1e6:.2f} "
            f"| {_skew(a)} | {_skew(b)} |"
        )
    ended = [one for one in pairs if one.ended]
    slow = [one.ratio for one in ended if one.plain.seconds > 10]
    quick = [one.ratio for one in ended if one.plain.seconds <= 10]
    if slow:
        lines += ["", f"- plain over 10 s: geometric mean {geometric_mean(slow):.2f}"]
    if quick:
        lines += [
            "",
            f"- plain up to 10 s: geometric mean {geometric_mean(quick):.2f}, "
            f"largest {max(quick):.2f}",
        ]
    return "\n".join(lines)


def _seconds(work: SparkWork) -> str:
    return f"{'' if work.ended else '> '}{work.seconds:.2f}"


def _ratio(pair: Pair) -> str:
    """What is known of the ratio where one of both did not end."""
    if not pair.plain.ended and not pair.private.ended:
        return "–"
    sign = "" if pair.ended else "> " if pair.plain.ended else "< "
    return f"{sign}{pair.ratio:.2f}"


def _known(figure: float) -> str:
    return f"{figure:.2f}" if figure else "–"


def _skew(work: SparkWork) -> str:
    """Nothing where every stage had one task."""
    return f"{work.largest_task:.1f}" if work.largest_seconds else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--threads", type=int, default=2, help="tasks at a time")
    parser.add_argument("--workers", type=int, default=0, help="of a cluster on loopback")
    parser.add_argument("--memory", default="2g", help="of the one process")
    parser.add_argument("--graphs", help="comma-separated names; all by default")
    parser.add_argument("--queries", default=",".join(PATTERNS))
    parser.add_argument("--tables", type=Path, help="a folder with a Parquet file of each table")
    parser.add_argument("--scale", default="1", help="of TPC-H")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--edges", type=int, default=10_000_000, help="of the power-law graph")
    parser.add_argument("--skewed", default="path2")
    parser.add_argument("--runs", type=int, default=2, help="of each cell; the fastest counts")
    parser.add_argument("--limit", type=float, default=120, help="seconds of one statement")
    parser.add_argument(
        "--private-first", action="store_true", help="the private answer before the plain count"
    )
    parser.add_argument("--in-spark", action="store_true", help="fetch no table")
    parser.add_argument("--keep", action="store_true", help="keep what is not measured now")
    options = parser.parse_args()
    if (reason := why_not()) is not None:
        print(f"left out: {reason}")
        return
    with (
        cluster(options.workers, options.memory) as further,
        application(options.threads, options.memory, further) as session,
    ):
        for part in options.parts.split(","):
            name = f"spark_{part}" + ("_in_spark" if options.in_spark else "")
            name += "" if options.threads == 2 else f"_{options.threads}"
            name += f"_workers_{options.workers}" if options.workers else ""
            pairs = kept(name) if options.keep else {}
            for pair in PARTS[part](session, options):
                pairs[pair.name] = pair
                # What has been measured is not lost when a later cell fails.
                found = list(pairs.values())
                write_results(name, table(found), [asdict(one) for one in found])


def kept(name: str) -> dict[str, Pair]:
    """What an earlier run measured."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return {}
    return {
        one["name"]: Pair(one["name"], SparkWork(**one["plain"]), SparkWork(**one["private"]))
        for one in json.loads(path.read_text(encoding="utf-8"))
    }


if __name__ == "__main__":
    main()
