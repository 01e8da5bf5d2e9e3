"""The generated parts of docs/sql-reference.md: functions and refusals."""

from __future__ import annotations

from pathlib import Path

from sqlrs.compiler.functions import FUNCTIONS
from sqlrs.refusals import CHAPTERS, Refusal
from tests.compiler.fixture_files import blocks

PAGE = Path(__file__).parents[2] / "docs" / "sql-reference.md"


def functions() -> str:
    """The names of all functions, those of one engine alone apart."""
    forms = {"extract", "position"}
    both = set(FUNCTIONS["duckdb"]) & set(FUNCTIONS["postgres"])
    lines = [_listed(both | forms)]
    for dialect, title in (("duckdb", "DuckDB"), ("postgres", "PostgreSQL")):
        lines.append(f"In {title} also {_listed(set(FUNCTIONS[dialect]) - both)}.")
    return "\n\n".join(lines)


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def refusals() -> str:
    """Every code with its meaning, its first example if it has one, and its hint."""
    examples: dict[str, str] = {}
    for block in blocks("refusals.sql"):
        examples.setdefault(block.expected["code"], block.sql)
    parts = []
    for chapter, entries in CHAPTERS.items():
        parts.append(f"### About {chapter}")
        parts += [_refusal(entry, examples.get(entry.code)) for entry in entries]
    return "\n\n".join(parts)


def _refusal(entry: Refusal, example: str | None) -> str:
    lines = [f"#### {entry.code}", f"{_sentence(entry.meaning)} (SQLSTATE {entry.sqlstate})."]
    if example is not None:
        lines.append(f"```sql\n{example}\n```")
    if entry.hint:
        lines.append(f"Hint: {entry.hint}.")
    return "\n\n".join(lines)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def filled(page: str) -> str:
    """The page with its generated parts as they must be."""
    for name, text in (("functions", functions()), ("refusals", refusals())):
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = page.partition(start)
        page = f"{before}{start}{text}\n{end}{rest.partition(end)[2]}"
    return page
