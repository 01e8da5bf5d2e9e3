"""The graphs of `table1` and `speed`: the paper's five where they are at hand, else generated ones.

The five are SNAP's collaboration networks, one file each: https://snap.stanford.edu/data/ca-NAME.txt.gz
with the names below. Their folder is named by SQLRS_GRAPHS, else it is ../shared/snap. The numbers
that the paper prints are read from ../shared/table1.json, if that is there; they are compared with.
Without the five, both benchmarks run on random graphs of the same kind, and what they write is
called ..._generated, so that it is not taken for the paper's table.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import collaboration_graph

SHARED = Path(__file__).resolve().parents[2] / "shared"
NAMES = ("CondMat", "AstroPh", "HepPh", "HepTh", "GrQc")
SOURCE = "https://snap.stanford.edu/data/ca-NAME.txt.gz"
PATTERNS = ("triangle", "star3", "square", "two_triangles")
_GENERATED = {"random 5000": 5_000, "random 10000": 10_000}


@dataclass(frozen=True)
class Graphs:
    """Edge lists by name, and what is added to the name of results that are not the paper's."""

    files: dict[str, Path]
    suffix: str = ""


@contextmanager
def graphs(names: str | None) -> Iterator[Graphs]:
    """The named graphs (comma-separated; all by default) until the block ends."""
    folder = Path(os.environ.get("SQLRS_GRAPHS", SHARED / "snap"))
    found = {name: folder / f"ca-{name}.txt.gz" for name in NAMES}
    found = {name: path for name, path in found.items() if path.is_file()}
    if names is not None:
        missing = set(names.split(",")) - found.keys()
        if missing:
            raise SystemExit(f"not in {folder}: {', '.join(sorted(missing))}; see {SOURCE}")
        found = {name: found[name] for name in names.split(",")}
    if found:
        yield Graphs(found)
        return
    print(f"no graph in {folder} (they come from {SOURCE}): on generated ones\n")
    with tempfile.TemporaryDirectory() as scratch:
        made = {name: Path(scratch) / f"{edges}.txt.gz" for name, edges in _GENERATED.items()}
        for name, edges in _GENERATED.items():
            one_way = collaboration_graph(edges, seed=1)
            both_ways = sorted({*one_way, *((b, a) for a, b in one_way)})
            text = "".join(f"{a}\t{b}\n" for a, b in both_ways)
            made[name].write_bytes(gzip.compress(text.encode()))
        yield Graphs(made, "_generated")


def printed(query: str, graph: str) -> dict[str, float] | None:
    """One cell of the paper's table, or None where it is absent."""
    path = SHARED / "table1.json"
    if graph not in NAMES or not path.is_file():
        return None
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    place = table["order"].index(graph)
    rows = table["queries"][query]
    return {name: rows[name][place] for name in ("count", "SS", "RS", "ES") if name in rows}
