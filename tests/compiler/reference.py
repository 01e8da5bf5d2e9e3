"""Fills the generated parts of docs/sql-reference.md: python -m tests.compiler.reference"""

from __future__ import annotations

import re
from pathlib import Path

from sqlglot import exp

from sqlrs.functions import PURE_NAMES, PURE_NODES
from sqlrs.refusals import REFUSALS
from tests.compiler.fixture_files import blocks

PAGE = Path(__file__).parents[2] / "docs" / "sql-reference.md"


def functions() -> str:
    """The names of all known functions."""
    classes = (node for node in PURE_NODES if issubclass(node, exp.Func))
    named = {node.sql_names()[0].lower() for node in classes} - {"case"}
    # The tree holds mod(a, b) as a % b.
    known = {_SPELLED.get(name, name) for name in named} | PURE_NAMES | {"mod"}
    return ", ".join(f"`{name}`" for name in sorted(known))


# How the engines spell what the tree calls otherwise.
_SPELLED = {
    "str_position": "position",
    "timestamp_trunc": "date_trunc",
    "datediff": "date_diff",
    "date_from_parts": "make_date",
    "day_of_week": "dayofweek",
    "day_of_year": "dayofyear",
    "regexp_like": "regexp_matches",
}


def refusals() -> str:
    """Every code with its meaning, its first example and its hint."""
    examples = {}
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
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        page = re.sub(pattern, lambda m, t=text: f"{m[1]}{t}\n{m[2]}", page, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
