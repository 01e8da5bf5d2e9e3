"""docs/sql-reference.md cannot drift from the compiler."""

from __future__ import annotations

import re

from sqlrs.inline import MAX_TABLES
from sqlrs.parse import MAX_CHARACTERS, MAX_NESTING, MAX_TOKENS
from tests.compiler.reference import PAGE, filled

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_generated_parts_are_up_to_date() -> None:
    assert filled(TEXT) == TEXT, "run python -m tests.compiler.reference"


def test_the_limits_are_those_of_the_compiler() -> None:
    limits = TEXT.partition("## Limits")[2].partition("## Refusals")[0]
    assert [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", limits)] == [
        MAX_CHARACTERS,
        MAX_TOKENS,
        MAX_NESTING,
        MAX_TABLES,
    ]
