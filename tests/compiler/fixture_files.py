"""Reads the fixture files: blocks of `-- name: value` lines and SQL, separated by blank lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Block:
    """One example: what is expected of it, and its SQL."""

    expected: dict[str, str]
    sql: str

    def __str__(self) -> str:
        return self.sql.replace("\n", " ")


def blocks(name: str) -> list[Block]:
    """The examples of one fixture file, in order."""
    found = []
    for part in (FOLDER / name).read_text(encoding="utf-8").strip().split("\n\n"):
        lines = part.split("\n")
        head = [line for line in lines if line.startswith("-- ")]
        expected = dict(line[3:].split(": ", 1) for line in head)
        found.append(Block(expected, "\n".join(line for line in lines if line not in head)))
    return found
