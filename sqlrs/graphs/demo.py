"""A generated graph to try sqlrs on: friendships with many triangles, no file needed."""

from __future__ import annotations

import random
import tempfile
from decimal import Decimal
from pathlib import Path

from sqlglot import exp

from sqlrs.connecting import connect
from sqlrs.database import Database
from sqlrs.noise import DEFAULT_SHAPE, PolyLaplace
from sqlrs.records import dataclass

_VERTICES = 3_000
_GROUPS = 1_500
_SEED = 20211


def demo_database() -> Database:
    """An in-memory graph edge(src, dst), symmetric, every edge private."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "edge.txt")
        path.write_text("".join(f"{a}\t{b}\n" for a, b in demo_edges()), encoding="ascii")
        database = connect(tables={"edge": path}, private=["edge"])
        # The file goes, so its rows are read now.
        with database.engine.snapshot() as snapshot:
            snapshot.rows(exp.select("1").from_("edge").limit(1))
        return database


def demo_edges() -> list[tuple[int, int]]:
    """Both directions of every friendship: people meet in small groups, popular ones in many."""
    draw = random.Random(_SEED)
    edges: set[tuple[int, int]] = set()
    for _ in range(_GROUPS):
        group = {int(_VERTICES * draw.random() ** 1.5) for _ in range(draw.randint(2, 7))}
        edges.update((a, b) for a in group for b in group if a != b)
    return sorted(edges)


@dataclass(frozen=True)
class Truth:
    """What is behind a private answer. It may be told of made-up data alone."""

    count: int
    standard_error: int


def known_truth(database: Database, sql: str, epsilon: Decimal) -> Truth:
    """The true count of a query on the generated graph, and the standard error of its answers."""
    # The weights of a release fall by e**-beta a step, but for what rounding takes.
    beta = round(epsilon / DEFAULT_SHAPE, 12)
    refined, paper = (database.sensitivity(sql, name, beta) for name in ("refined", "residual"))
    multiple = PolyLaplace(epsilon).standard_error_multiple()
    return Truth(refined.count or 0, round(multiple * float(min(refined.value, paper.value))))
