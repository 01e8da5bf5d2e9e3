"""Every refusal: its code, its place in the text, what is underlined, its message and its hint."""

from __future__ import annotations

import pytest

from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.complexity import MAX_CHARACTERS
from sqlrs.errors import QueryRefused
from sqlrs.refusals import REFUSALS
from tests.compiler.fixture_files import Block, blocks
from tests.compiler.schema import CATALOG, POSTGRES

EXAMPLES = blocks("refusals.sql")


def refused(sql: str, dialect: str = "duckdb") -> QueryRefused:
    with pytest.raises(QueryRefused) as caught:
        compile_query(sql, CATALOG if dialect == "duckdb" else POSTGRES)
    return caught.value


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_example_is_refused_as_described(example: Block) -> None:
    error = refused(example.sql, example.expected.get("dialect", "duckdb"))
    assert error.span is not None
    line, column = error.span.line_and_column(example.sql)
    assert {
        "code": error.code,
        "place": f"{line}:{column}",
        "marks": example.sql[error.span.start : error.span.end],
        "message": error.message,
        "hint": error.hint,
    } == {name: value for name, value in example.expected.items() if name != "dialect"}
    assert error.sqlstate == REFUSALS[error.code].sqlstate
    assert error.exit_code == 3
    assert error.text == example.sql


def test_every_code_has_an_example() -> None:
    assert {example.expected["code"] for example in EXAMPLES} == set(REFUSALS)


def test_long_text_is_refused_without_echo() -> None:
    error = refused("SELECT count(*) FROM edge WHERE src = 1" + " " * MAX_CHARACTERS)
    assert error.code == "too_complex"
    assert len(error.describe()) < 500


@pytest.mark.parametrize(
    "condition",
    [
        "NOT " * 500 + "src = 1",
        " AND ".join(["src = 1"] * 3000),
        " OR ".join(["src = 1"] * 1000),
        " + ".join(["src"] * 1000) + " = 1",
        "- " * 600 + "src = 1",
        "CASE WHEN " * 100 + "src = 1" + " THEN TRUE END" * 100,
        "(" * 5000,
    ],
    ids=lambda condition: condition[:12],
)
def test_deep_nesting_is_refused_and_never_a_crash(condition: str) -> None:
    assert refused(f"SELECT count(*) FROM edge WHERE {condition}").code in (
        "too_complex",
        "syntax_error",
    )


def test_a_doubling_chain_of_ctes_is_refused() -> None:
    chain = ["c0 AS (SELECT * FROM edge)"]
    chain += [f"c{i} AS (SELECT a.src FROM c{i - 1} a, c{i - 1} b)" for i in range(1, 30)]
    assert refused(f"WITH {', '.join(chain)} SELECT count(*) FROM c29").code == "too_complex"


@pytest.mark.parametrize("column", ["ctid", "xmin", "tableoid", "oid"])
def test_system_columns_of_postgres_are_unknown(column: str) -> None:
    sql = f"SELECT count(*) FROM edge WHERE {column} IS NOT NULL"
    assert refused(sql, "postgres").code == "unknown_column"
