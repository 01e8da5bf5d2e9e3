"""The generated parts of docs/sql-reference.md: functions and refusals."""

from __future__ import annotations

from pathlib import Path

from sqlrs.compiler.functions import FUNCTIONS
from sqlrs.refusals import REFUSALS
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
    """Every code with its meaning, its first example and its hint."""
    examples: dict[str, str] = {}
    for block in blocks("refusals.sql"):
        examples.setdefault(block.expected["code"], block.sql)
    parts = []
    for code, entry in REFUSALS.items():
        parts.append(
            f"### {code}\n\n{entry.meaning[0].upper()}{entry.meaning[1:]} "
            f"(SQLSTATE {entry.sqlstate}).\n\n"
            f"```sql\n{examples[code]}\n```\n\nHint: {entry.hint}."
        )
    return "\n\n".join(parts)


def filled(page: str) -> str:
    """The page with its generated parts as they must be."""
    for name, text in (("functions", functions()), ("refusals", refusals())):
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = page.partition(start)
        page = f"{before}{start}{text}\n{end}{rest.partition(end)[2]}"
    return page
