"""The five graphs of the paper and its table, where they are at hand; nothing is committed here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared"
PATTERNS = ("triangle", "star3", "square", "two_triangles")


def graph_files() -> dict[str, Path]:
    """The SNAP files by name, in the table's order; empty where they are absent."""
    order = paper_table().get("order", [])
    files = {name: SHARED / "snap" / f"ca-{name}.txt.gz" for name in order}
    return {name: path for name, path in files.items() if path.is_file()}


def paper_table() -> dict[str, Any]:
    """The paper's results, or an empty table where they are absent."""
    path = SHARED / "table1.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found
