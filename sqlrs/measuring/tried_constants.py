"""The constants of a query, tried by the engine itself before the charge; no table is named.

What the text alone makes fail ('abc'::uuid, INTERVAL '1 fortnite') would fail on every row, after
the charge. Only the engine can judge all of it. It sees what the analyst wrote and the public types
of columns, so that what it says tells nothing about a row. Functions that the owner declared are
not called: that they read no table is somebody's word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.conditions import RELATIONS, is_constant
from sqlrs.compiler.functions import is_declared
from sqlrs.compiler.source import place_of
from sqlrs.dialects import dialect_named
from sqlrs.engines.base import Snapshot
from sqlrs.errors import StatementFailed
from sqlrs.query import Query
from sqlrs.refusals import refusal
from sqlrs.trees.build import computed_value, filtered_by, inner, named, number, select_from
from sqlrs.trees.identifiers import column
from sqlrs.trees.predicates import filter_condition, general_condition
from sqlrs.values import MOMENTS, NUMBERS

# What gives a value of its own, where none of its parts is a column. Of the others, CASE and lists
# among them, the parts are looked at.
_EVALUATED = (
    *(exp.Cast, exp.Interval, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe),
    *(exp.Func, exp.Neg),
)
_TAKEN_APART = (exp.Case, exp.If, exp.Any, exp.Array, exp.And, exp.Or, exp.TryCast)
# Types that a plain text takes on beside a column of theirs. Not all do: an enum becomes a text.
_TAKEN_ON = NUMBERS | MOMENTS | {Family.BOOLEAN}
_TAKEN_ON_BY_NAME = frozenset({"UUID", "TIME", "INTERVAL"})
_ROW = "r"


def check_constants(queries: Sequence[Query], snapshot: Snapshot, dialect: str, sql: str) -> None:
    """Refuse the queries of the text ``sql`` if the engine cannot evaluate a constant of theirs."""
    conditions: list[_Condition] = []
    for condition in (one for query in queries for one in _conditions(query)):
        # Queries of one text have most of their conditions in common.
        if condition not in conditions:
            conditions.append(condition)
    found = [constant for tree, _ in conditions for constant in _constants(tree)]
    row_by_row = dialect_named(dialect).converts_each_row
    if row_by_row:
        found += [text for condition in conditions for text in _typed_texts(*condition)]
    tried = list(dict.fromkeys(found))
    asked = [_is_null(constant) for constant in tried]
    if not row_by_row or dialect_named(dialect).judges_conditions:
        # Plain texts are read with the statement, in the type of what they are set against.
        asked += [_over_no_row(*condition) for condition in conditions]
    if not asked:
        return
    try:
        snapshot.rows(exp.Select(expressions=asked))
        return
    except StatementFailed:
        pass
    if len(queries) > 1:
        # The first that fails alone tells where.
        for query in queries:
            check_constants([query], snapshot, dialect, sql)
    trees = tried if row_by_row else [tree for tree, _ in conditions]
    literals = {str(one.this) for tree in trees for one in tree.find_all(exp.Literal)}
    raise refusal(
        "bad_literal",
        f"{dialect_named(dialect).title} cannot read or evaluate a constant of the query",
        hint="check dates, times, intervals, numbers and typed texts; nothing was charged",
        span=place_of(literals, sql, dialect),
        text=sql,
    )


_Condition = tuple[exp.Expression, Mapping[str, ColumnType]]


def _conditions(query: Query) -> Iterator[_Condition]:
    """What the engine evaluates as written, as a condition, and its columns, all of one row."""
    for atom in query.atoms:
        types = {one.name: one.type for one in atom.table.columns}
        for one in atom.table.columns:
            if one.computed is not None and one.name in atom.reads:
                value = computed_value(one, _ROW)
                of = sorted({part.name for part in value.find_all(exp.Column)})
                yield _is_null(value), {name: types[name] for name in of}
        for found in atom.filters:
            tree = filter_condition(found, _ROW)
            yield tree, {name: types[name] for name in sorted(found.columns)}
    for general in query.generals:
        names = {variable: f"v{i}" for i, variable in enumerate(general.arguments)}
        tree = general_condition(general, {v: column(name, _ROW) for v, name in names.items()})
        yield tree, {name: variable.type for variable, name in names.items()}


def _constants(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The largest parts without a column that could fail."""
    if isinstance(tree, _EVALUATED) and not isinstance(tree, _TAKEN_APART):
        if is_constant(tree):
            return
        if not any(isinstance(part, exp.Column) or is_declared(part) for part in tree.walk()):
            yield tree
            return
    for part in tree.iter_expressions():
        yield from _constants(part)


def _typed_texts(tree: exp.Expression, types: Mapping[str, ColumnType]) -> Iterator[exp.Expression]:
    """Plain texts that a column alone is compared with, in the type that they take on there."""
    for comparison in tree.find_all(*RELATIONS, exp.In, exp.Between):
        parts = [part.unnest() for part in comparison.iter_expressions()]
        texts = [part for part in parts if isinstance(part, exp.Literal) and part.is_string]
        columns = [part for part in parts if isinstance(part, exp.Column)]
        if len(columns) == 1 and len(texts) == len(parts) - 1:
            kind = types[columns[0].name]
            if kind.family in _TAKEN_ON or kind.name in _TAKEN_ON_BY_NAME:
                yield from (exp.Cast(this=text.copy(), to=_type(kind)) for text in texts)


def _is_null(constant: exp.Expr) -> exp.Expression:
    # Not the value itself: a driver may have no form for it, such as for an infinite date.
    return exp.Is(this=exp.Paren(this=constant.copy()), expression=exp.Null())


def _over_no_row(tree: exp.Expression, types: Mapping[str, ColumnType]) -> exp.Expression:
    """Whether the condition holds for one of no rows, whose columns have these types."""
    if any(map(is_declared, tree.walk())):
        return exp.false()
    nulls = [named(exp.Cast(this=exp.Null(), to=_type(kind)), name) for name, kind in types.items()]
    empty = exp.Select(expressions=nulls or [number(1)], limit=exp.Limit(expression=number(0)))
    rows = filtered_by(select_from(inner(empty, _ROW), number(1)), [tree])
    return exp.Exists(this=rows)


def _type(kind: ColumnType) -> exp.DataType:
    """The type by its name, as the database itself writes it."""
    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=kind.name)
