"""What DuckDB says of its functions, and whether a macro depends on its arguments alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from sqlglot import exp, parse_one

from sqlrs.catalog import Routine, one_routine
from sqlrs.compiler.functions import VOLATILE_NAMES, names_the_moment
from sqlrs.engines.base import Row
from sqlrs.errors import EngineFailed
from sqlrs.templates import template

Rows = Callable[[exp.Expression], list[Row]]
Run = Callable[[str, Mapping[str, str]], list[Row]]

# What an expression of values may be made of, as the engine's parser calls it. Not among them are
# subqueries, windows, lambdas, stars and parameters.
_CLASSES = frozenset(
    """
    BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR TYPE
    """.split()  # noqa: SIM905
)

# DuckDB calls these consistent too, but they read the clock, the schema or the program's version.
_UNSTEADY = VOLATILE_NAMES | {
    *("age", "current_localtime", "current_localtimestamp"),
    *("index_key", "json_serialize_plan", "version"),
}


def read_routines(names: Collection[str], rows: Rows, run: Run) -> tuple[Routine, ...]:
    """The functions with these names, built-in ones too; macros with what they call."""
    found = _named(names, rows)
    by_name = {name: [row for row in found if _name(row) == name] for name in names}
    return tuple(
        one_routine(name, [_routine(row, rows, run) for row in same])
        for name, same in by_name.items()
        if same
    )


def _named(names: Collection[str], rows: Rows) -> list[Row]:
    """What is listed under the names. The engine's own names are in lower case, others may not."""
    statement = parse_one(template("duckdb/functions.sql"), dialect="duckdb")
    called = exp.In(
        this=exp.column("function_name"), expressions=[exp.Literal.string(n) for n in sorted(names)]
    )
    own = exp.Not(this=exp.column("internal"))
    if not isinstance(statement, exp.Select):
        raise EngineFailed("the list of functions cannot be read")
    return [row for row in rows(statement.where(exp.or_(own, called))) if _name(row) in names]


def _name(row: Row) -> str:
    return str(row[0]).lower()


def _routine(row: Row, rows: Rows, run: Run) -> Routine:
    name, kind, internal, _, parameters, body, _ = row
    taken = tuple(map(str, parameters)) if isinstance(parameters, list) else ()
    if kind == "macro" and not internal:
        problem = _problem_of(str(body), taken, rows, run)
    else:
        problem = _problem_of_built_in(row)
    # Everything else that the engine says of it is part of what must not change.
    return Routine(str(name).lower(), len(taken), repr(row), problem)


def _problem_of_built_in(row: Row) -> str | None:
    _, kind, _, stability, *_ = row
    if kind != "scalar":
        return "is not a function of one row's values"
    steady = stability == "CONSISTENT" and _name(row) not in _UNSTEADY
    return None if steady else "does not always give the same result"


def _problem_of(body: str, parameters: tuple[str, ...], rows: Rows, run: Run) -> str | None:
    """Why a macro's result may depend on more than its arguments, or None."""
    if names_the_moment(body):
        return "names the present moment"
    tree = _tree(body, run)
    if tree is None:
        return "is not an expression of its arguments"
    known = {parameter.lower() for parameter in parameters}
    called = set[str]()
    for node in tree:
        if node["class"] not in _CLASSES:
            return f"holds a {str(node['class']).lower()}: it is not an expression of its arguments"
        if node["class"] == "COLUMN_REF":
            named = node.get("column_names")
            if not isinstance(named, list) or [str(n).lower() in known for n in named] != [True]:
                return "reads more than its arguments"
        if node["class"] == "FUNCTION":
            called.add(str(node.get("function_name")).lower())
    listed = _named(called, rows)
    for one in sorted(called):
        same = [row for row in listed if _name(row) == one]
        if not same or not all(row[2] and _problem_of_built_in(row) is None for row in same):
            return f"calls {one}, which is not known to depend on its arguments alone"
    return None


def _tree(body: str, run: Run) -> list[dict[str, Any]] | None:
    """All expressions of the one expression that the text is, as the engine reads it; else None."""
    with suppress(EngineFailed, ValueError, KeyError, TypeError):
        ((text,),) = run(template("duckdb/read_macro.sql"), {"text": f"SELECT {body}"})
        (statement,) = json.loads(str(text))["statements"]
        node = statement["node"]
        if node["from_table"]["type"] == "EMPTY" and len(node["select_list"]) == 1:
            return list(_expressions(node))
    return None


def _expressions(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "class" in node:
            yield node
        for part in node.values():
            yield from _expressions(part)
    elif isinstance(node, list):
        for part in node:
            yield from _expressions(part)
