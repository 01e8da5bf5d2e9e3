"""Every refusal: its code, its place in the text, what is underlined, its message and its hint."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sqlrs
from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.complexity import MAX_CHARACTERS
from sqlrs.compiler.grammar import _REFUSED_ARGUMENTS, _REFUSED_NODES
from sqlrs.errors import QueryRefused
from sqlrs.refusals import CHAPTERS, REFUSALS
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


def test_every_code_of_the_language_has_an_example() -> None:
    codes = {entry.code for entry in CHAPTERS["the language"]}
    assert {example.expected["code"] for example in EXAMPLES} == codes


def test_every_code_stands_in_the_list_once() -> None:
    codes = [entry.code for entries in CHAPTERS.values() for entry in entries]
    assert sorted(codes) == sorted(REFUSALS)


# What is said of which part, where the code is no literal of the call that raises it.
_CODES_BY_NODE = {*_REFUSED_NODES.values(), *_REFUSED_ARGUMENTS.values()}
_PASSED_ON = {
    "compiler/afterwards.py": {"code"},
    "compiler/above.py": {"code"},
    "compiler/grammar.py": {"code"},
    "compiler/rows.py": {"error.code"},
    "compiler/partitioned.py": {"error.code"},
    "compiler/resolving.py": {"'negated_subquery' if negated else 'subquery'"},
    "compiler/source.py": {"code"},
}


def _raised() -> Iterator[tuple[str, ast.expr]]:
    """The file and the code of every call that makes a refusal."""
    package = Path(sqlrs.__file__).parent
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            file = path.relative_to(package).as_posix()
            assert name != "QueryRefused" or file == "refusals.py", f"{file}:{node.lineno}"
            if name == "refusal":
                yield file, node.args[0]


def test_every_refusal_is_raised_by_a_code_of_the_list() -> None:
    for file, code in _raised():
        if isinstance(code, ast.Constant):
            assert code.value in REFUSALS, file
        else:
            assert ast.unparse(code) in _PASSED_ON.get(file, ()), file
    assert set(REFUSALS) >= _CODES_BY_NODE


def test_every_code_of_the_list_is_raised() -> None:
    raised = {code.value for _, code in _raised() if isinstance(code, ast.Constant)}
    examples = {example.expected["code"] for example in EXAMPLES}
    assert set(REFUSALS) == raised | examples


def test_no_message_or_hint_is_written_twice() -> None:
    """A refusal that says the words of the list once more would drift from it."""
    words = [words for entry in REFUSALS.values() for words in (entry.meaning, entry.hint)]
    listed = {text for text in words if len(text.split()) > 3}
    package = Path(sqlrs.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if path.name != "refusals.py":
            found = {
                node.value
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            assert not found & listed, path


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
