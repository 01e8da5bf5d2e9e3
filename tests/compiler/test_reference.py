"""docs/sql-reference.md cannot drift from the compiler."""

from __future__ import annotations

import re

from sqlrs.compiler.complexity import (
    MAX_CHARACTERS,
    MAX_NESTING,
    MAX_TOKENS,
    PARSER_STEPS_PER_TOKEN,
)
from sqlrs.compiler.growth_of_text import MOST_BYTES, MOST_TIMES
from sqlrs.compiler.lower import MAX_COMPARISONS, MAX_INEQUALITIES
from sqlrs.compiler.rows import MAX_TABLES
from sqlrs.effort import MAX_ANALYSIS_STEPS, MAX_STEPS
from tests.compiler.reference import PAGE, filled
from tests.support.kept import assert_kept

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_generated_parts_are_up_to_date() -> None:
    assert_kept(PAGE, filled(TEXT))


def test_the_limits_are_those_of_the_compiler() -> None:
    limits = TEXT.partition("## Limits")[2].partition("## Refusals")[0]
    assert [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", limits)] == [
        MAX_CHARACTERS,
        MAX_TOKENS,
        MAX_NESTING,
        MAX_TABLES,
        MAX_INEQUALITIES,
        MAX_COMPARISONS,
        PARSER_STEPS_PER_TOKEN,
        MAX_STEPS,
        MAX_ANALYSIS_STEPS,
        MOST_TIMES,
        MOST_BYTES,
    ]
