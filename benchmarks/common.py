"""What the benchmarks of speed share: timing with a limit, random tables, and where results go."""

from __future__ import annotations

import csv
import json
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlrs.compiled import Compiled
from sqlrs.database import Database
from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import Interrupted
from sqlrs.measuring.measure import measure
from sqlrs.mechanisms import mechanism_named
from sqlrs.planning.choose import choose
from sqlrs.residuals.isomorphism import representatives
from sqlrs.sql.repetitions import sizes_of
from sqlrs.sql.write import statement_of

_LONG = 5.0
# How often it is looked whether the limit is reached.
_LOOK = 0.02
Clock = Callable[[], float]
Opened = Callable[[], AbstractContextManager[Database]]
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Seconds of one query: the plain count, the private answer, the residuals in plain SQL.

    None stands for more than the limit. ``planned_count`` is the count alone as sqlrs plans it;
    what the private answer takes beyond it are the residuals, all but for some milliseconds.
    ``private`` is the first answer on some rows, ``again`` a later one: on rows that nobody can
    change the values of residuals of whole tables are kept.
    """

    name: str
    plain: float | None
    private: float
    again: float
    planned_count: float
    plain_residuals: float | None

    @property
    def ratio(self) -> float | None:
        """The private answer as a multiple of the plain count."""
        return None if self.plain is None else self.private / self.plain

    @property
    def residuals(self) -> float:
        """What the private answer adds to its count, at least a millisecond."""
        return max(self.private - self.planned_count, 0.001)


def time_query(
    name: str,
    opened: Opened,
    sql: str,
    limit: float,
    residual_limit: float | None = None,
    clock: Clock = time.perf_counter,
) -> Timing:
    """Time the ways to one answer; ``opened`` opens the same data anew, with nothing kept of it."""
    answers = [_private_answers(opened, sql, clock) for _ in range(2)]
    private, again = (min(times) for times in zip(*answers, strict=True))
    with opened() as database:
        compiled = Compiled.of(sql, database.catalog, database.settings)
        assert isinstance(compiled, Compiled)
        residuals = compiled.residuals
        query = residuals.query
        dialect = database.engine.dialect
        count = statement_of(choose(residuals.of(query.everything), how="plain"), dialect)
        wanted = mechanism_named("polylaplace", parse_epsilon("1"), 5).prepare(residuals).wanted
        parts = {r.members: r for r in representatives(residuals.undecided(wanted)).values()}
        plain = [statement_of(choose(r, how="plain"), dialect) for r in parts.values()]

        def plain_count() -> None:
            with database.engine.snapshot() as snapshot:
                snapshot.scalar(count)

        def plain_residuals() -> None:
            with database.engine.snapshot() as snapshot:
                for statement in plain:
                    snapshot.scalar(statement)

        def counted_alone() -> None:
            measure(database.engine, residuals, ())

        planned_count = repeated(counted_alone, database, math.inf, clock)
        assert planned_count is not None
        return Timing(
            name,
            repeated(plain_count, database, limit, clock),
            private,
            again,
            planned_count,
            repeated(plain_residuals, database, residual_limit or limit, clock),
        )


def _private_answers(opened: Opened, sql: str, clock: Clock) -> tuple[float, float]:
    """Seconds of the first answer on some rows, and of a second one; files are read before."""
    with opened() as database:
        compiled = Compiled.of(sql, database.catalog, database.settings)
        assert isinstance(compiled, Compiled)
        tables = {atom.table.identity: atom.table for atom in compiled.residuals.query.atoms}
        with database.engine.snapshot() as snapshot:
            snapshot.rows(sizes_of([*tables.values()]))
        found = []
        # A second answer at the same ε would come from the ledger.
        for epsilon in ("1", "1.01"):
            start = clock()
            database.count(sql, epsilon=epsilon)
            found.append(clock() - start)
        return found[0], found[1]


def repeated(
    work: Callable[[], object], database: Database, limit: float, clock: Clock = time.perf_counter
) -> float | None:
    """Seconds of the faster of two runs, or of one that takes long: the first finds memory cold."""
    first = limited(work, database, limit, clock)
    if first is None or first > _LONG:
        return first
    second = limited(work, database, limit, clock)
    return first if second is None else min(first, second)


def limited(
    work: Callable[[], object], database: Database, limit: float, clock: Clock = time.perf_counter
) -> float | None:
    """Seconds that the work took by a clock, or None if it was stopped at the limit."""
    done = threading.Event()
    start = clock()

    def stop_at_limit() -> None:
        while not done.wait(_LOOK):
            if clock() - start > limit:
                database.engine.interrupt()
                return

    watch = threading.Thread(target=stop_at_limit, daemon=True)
    if math.isfinite(limit):
        watch.start()
    try:
        with suppress(Interrupted):
            work()
            return clock() - start
        return None
    finally:
        done.set()
        if watch.ident is not None:
            watch.join()


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs))


def timing_table(
    timings: Sequence[Timing], limit: float, residual_limit: float | None = None
) -> str:
    """The timings as Markdown, with the private answer as a multiple of the plain count."""
    lines = [
        "| query | plain COUNT(*) s | private answer s | ratio | a second one s "
        "| its count alone s | all residuals in plain SQL s |",
        "|---|---|---|---|---|---|---|",
    ]
    for t in timings:
        ratio = f"< {t.private / limit:.3f}" if t.ratio is None else f"{t.ratio:.3f}"
        lines.append(
            f"| {t.name} | {seconds(t.plain, limit)} | {t.private:.2f} | {ratio} "
            f"| {t.again:.2f} | {t.planned_count:.2f} "
            f"| {seconds(t.plain_residuals, residual_limit or limit)} |"
        )
    return "\n".join(lines)


def write_results(name: str, text: str, data: object) -> None:
    """Markdown and JSON under benchmarks/results, and the Markdown on the terminal."""
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def write_graph(path: Path, edges: Iterable[tuple[int, int]]) -> Path:
    """A SNAP edge list."""
    path.write_text("".join(f"{a}\t{b}\n" for a, b in edges), encoding="utf-8")
    return path


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def uniform_graph(edges: int, seed: int) -> list[tuple[int, int]]:
    """Directed, ten edges a vertex on average."""
    rng = random.Random(seed)
    vertices = max(edges // 10, 2)
    return [(rng.randrange(vertices), rng.randrange(vertices)) for _ in range(edges)]


def skewed_graph(edges: int, seed: int) -> list[tuple[int, int]]:
    """Directed, not symmetric: sources and targets follow two power laws."""
    rng = random.Random(seed)
    vertices = max(edges // 10, 2)

    def vertex() -> int:
        return min(int(rng.paretovariate(0.9)), vertices) * 7919 % vertices

    return [(vertex(), rng.randrange(vertices) if i % 2 else vertex()) for i in range(edges)]


def collaboration_graph(edges: int, seed: int) -> list[tuple[int, int]]:
    """Symmetric, made of cliques of 2 to 40 like the co-authors of a paper."""
    rng = random.Random(seed)
    vertices = max(edges // 10, 50)
    found: list[tuple[int, int]] = []
    while len(found) < edges:
        size = min(1 + int(rng.paretovariate(1.1)), 40)
        first = rng.randrange(vertices)
        team = {(first + int(rng.paretovariate(0.8))) % vertices for _ in range(size)}
        found += [(a, b) for a in team for b in team if a != b]
    return found[:edges]


GRAPHS = {
    "uniform": uniform_graph,
    "power law": skewed_graph,
    "collaboration": collaboration_graph,
}


def seconds(value: float | None, limit: float) -> str:
    """A time, or that it is beyond the limit."""
    return f"> {limit:.0f}" if value is None else f"{value:.2f}"
