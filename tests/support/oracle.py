"""The count of a `Query` value by nested loops over Python rows: slow, and nothing like the engine.

`count(query, database)` takes ``{table.identity: [row, …]}``, each row a tuple in the order of the
table's columns. Joins, inequalities, comparisons and DISTINCT are evaluated here with SQL's NULL
semantics; only opaque conditions (filters, general predicates) are put to DuckDB, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
from sqlglot import exp

from sqlrs.query import Atom, Comparison, Constant, Inequality, Query, Term, Variable

Row = tuple[Any, ...]
Database = Mapping[tuple[str | None, str], Sequence[Row]]


def count(query: Query, database: Database, dialect: str = "duckdb") -> int:
    """The query's true answer on the database."""
    places = [term for atom in query.atoms for _, term in atom.terms if isinstance(term, Variable)]
    joined = {v for v in places if places.count(v) > 1}
    bindings: list[dict[Variable, Any]] = [{}]
    for atom in query.atoms:
        rows = _filtered(atom, database[atom.table.identity], dialect)
        bindings = [
            extended
            for binding in bindings
            for row in rows
            if (extended := _matched(atom, row, binding, joined)) is not None
        ]
    results = [
        b
        for b in bindings
        if all(_unequal(p, b) for p in query.inequalities)
        and all(_compared(p, b) for p in query.comparisons)
    ]
    for general in query.generals:
        tree = general.condition
        assert isinstance(tree, exp.Expression)
        columns = [f"v{i}" for i in range(len(general.arguments))]
        named = tree.copy().transform(
            lambda n: exp.column(n.name, quoted=True) if isinstance(n, exp.Placeholder) else n
        )
        types = [v.type.name for v in general.arguments]
        values = [tuple(b[v] for v in general.arguments) for b in results]
        kept = _true(named.sql(dialect), columns, types, values)
        results = [b for b, keep in zip(results, kept, strict=True) if keep]
    if query.distinct is None:
        return len(results)
    return len({tuple(b[v] for v in sorted(query.distinct)) for b in results})


def _matched(
    atom: Atom, row: Row, binding: dict[Variable, Any], joined: set[Variable]
) -> dict[Variable, Any] | None:
    values = dict(zip((c.name for c in atom.table.columns), row, strict=True))
    extended = dict(binding)
    for column, term in atom.terms:
        value = values[column]
        if isinstance(term, Constant):
            if value is None or value != term.value:
                return None
        elif (value is None and term in joined) or extended.setdefault(term, value) != value:
            return None
    return extended


def _unequal(predicate: Inequality, binding: dict[Variable, Any]) -> bool:
    left, right = binding[predicate.left], binding[predicate.right]
    return left is not None and right is not None and left != right


def _compared(predicate: Comparison, binding: dict[Variable, Any]) -> bool:
    def value(term: Term) -> Any:
        return term.value if isinstance(term, Constant) else binding[term]

    left, right = value(predicate.left), value(predicate.right)
    if left is None or right is None:
        return False
    return bool(left < right if predicate.strict else left <= right)


def _filtered(atom: Atom, rows: Sequence[Row], dialect: str) -> list[Row]:
    kept = list(rows)
    names = [column.name for column in atom.table.columns]
    types = [column.type.name for column in atom.table.columns]
    for condition in atom.filters:
        tree = condition.condition
        assert isinstance(tree, exp.Expression)
        passed = _true(tree.sql(dialect), names, types, kept)
        kept = [row for row, keep in zip(kept, passed, strict=True) if keep]
    return kept


def _true(condition: str, names: list[str], types: list[str], rows: list[Row]) -> list[bool]:
    return [_true_of_row(condition, tuple(names), tuple(types), row) for row in rows]


@cache
def _true_of_row(condition: str, names: tuple[str, ...], types: tuple[str, ...], row: Row) -> bool:
    columns = ", ".join(
        f'CAST(? AS {kind}) AS "{name}"' for name, kind in zip(names, types, strict=True)
    )
    sql = f"SELECT ({condition}) IS TRUE FROM (SELECT {columns})"
    found = _connection().execute(sql, list(row)).fetchone()
    assert found is not None
    return bool(found[0])


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()
