"""The first lines of a text file: which of them are comments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from sqlglot import exp

from sqlrs.engines.file_schema import Ask, filled

_HEAD_LINES = 2000


def head_of(path: exp.Literal, ask: Ask) -> list[str]:
    """The first lines of a file; an empty one is the empty text."""
    statement = filled("duckdb/read_lines.sql", path=path, skip=exp.Literal.number(0))
    found = ask(statement.limit(_HEAD_LINES))
    return ["" if line is None else str(line).rstrip("\r") for (line,) in found or []]


def begins_with_comment(head: Sequence[str]) -> bool:
    """Whether the first line that is not empty is a comment."""
    return any(line.lstrip()[:1] in ("#", "%") for line in [x for x in head if x.strip()][:1])


def comments_above(pattern: str, ask: Ask) -> list[str]:
    """The lines of comments, and empty ones, that a file begins with."""
    head = head_of(exp.Literal.string(pattern), ask)
    above = list(takewhile(lambda line: not line.strip() or begins_with_comment([line]), head))
    # A file of nothing else has no line below them.
    return above if len(above) < len(head) and begins_with_comment(above) else []
