"""The constants of a query, tried by the engine itself before the charge; no table is named.

What the text alone makes fail ('abc'::uuid, INTERVAL '1 fortnite') would fail on every row, after
the charge. Only the engine can judge all of it. It sees what the analyst wrote and the public types
of columns, so that what it says tells nothing about a row. Functions that the owner declared are
not called: that they read no table is somebody's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family, Table
from sqlrs.compiler.conditions import RELATIONS, is_constant
from sqlrs.compiler.functions import is_declared
from sqlrs.compiler.source import place_of
from sqlrs.dialects import dialect_named
from sqlrs.engines.base import Snapshot
from sqlrs.errors import QueryRefused, StatementFailed
from sqlrs.measures import PerUnit
from sqlrs.query import Query
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.trees.build import computed_value, filtered_by, inner, named, number, select_from
from sqlrs.trees.identifiers import column
from sqlrs.trees.kept import Kept
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
# What has no value without rows.
_OF_ROWS = (exp.Column, exp.Star, exp.AggFunc, exp.Window, exp.Query)
_ROW = "r"


def check_constants(
    queries: Sequence[Query], snapshot: Snapshot, dialect: str, sql: str, kept: Kept | None = None
) -> None:
    """Refuse the queries of the text ``sql`` if the engine cannot evaluate a constant of theirs."""
    kept = Kept() if kept is None else kept
    attempt = kept.of(tuple(queries), lambda: _Attempt.of(queries, dialect), detail="constants")
    if not attempt.asked:
        return

    def tried() -> None:
        snapshot.rows(kept.of((attempt,), lambda: exp.Select(expressions=attempt.asked)))

    try:
        if dialect_named(dialect).keeps_settings:
            # What an engine could read once it can always.
            kept.of((attempt,), tried, detail="tried")
        else:
            tried()
        return
    except StatementFailed:
        pass
    if len(queries) > 1:
        # The first that fails alone tells where.
        for query in queries:
            check_constants([query], snapshot, dialect, sql)
    literals = {str(one.this) for tree in attempt.trees for one in tree.find_all(exp.Literal)}
    raise _not_read(literals, dialect, sql)


def check_constants_by_unit(
    parts: Sequence[PerUnit], snapshot: Snapshot, dialect: str, sql: str
) -> None:
    """The same of SQL inside units: what is constant, and the whole of it over tables without rows.

    What calls a function that the owner declared is tried in its constants alone.
    """
    texts = dialect_named(dialect).converts_each_row
    for part in parts:
        select = cast(exp.Select, part.select)
        asked = [_is_null(constant) for constant in dict.fromkeys(_constants(select))]
        if texts:
            typed = ((exp.Literal.string(text), kind) for text, kind in part.texts)
            asked += [_is_null(_cast(text, kind)) for text, kind in typed if _is_taken_on(kind)]
        if not any(map(is_declared, select.walk())):
            asked.append(exp.Exists(this=_without_rows(select, part.tables)))
        try:
            snapshot.rows(exp.Select(expressions=asked or [number(1)]))
        except StatementFailed:
            literals = {str(one.this) for one in select.find_all(exp.Literal)}
            raise _not_read(literals, dialect, sql) from None


def _not_read(literals: set[str], dialect: str, sql: str) -> QueryRefused:
    return refusal(
        "bad_literal",
        f"{dialect_named(dialect).title} cannot read or evaluate a constant of the query",
        hint="check dates, times, intervals, numbers and typed texts; nothing was charged",
        span=place_of(literals, sql, dialect),
        text=sql,
    )


@dataclass(frozen=True, eq=False)
class _Attempt:
    """What is asked of the engine, and the trees that it judges thereby."""

    asked: list[exp.Expression]
    trees: list[exp.Expr]

    @classmethod
    def of(cls, queries: Sequence[Query], dialect: str) -> _Attempt:
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
        return cls(asked, tried if row_by_row else [tree for tree, _ in conditions])


def _without_rows(select: exp.Select, tables: Iterable[Table]) -> exp.Expression:
    """The query over tables of the same columns that have no row."""
    made = select.copy()
    names = {one.name for one in made.find_all(exp.Column)}
    known = {table.identity: table for table in tables}
    for place in list(made.find_all(exp.Table)):
        table = known.get((place.db or None, place.name))
        if table is not None:
            types = {one.name: one.type for one in table.columns if one.name in names}
            place.replace(inner(_no_rows(types), place.alias_or_name))
    return made


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
    if isinstance(tree, exp.Window):
        # Its function is nothing without the window.
        for part in (*tree.this.iter_expressions(), *tree.iter_expressions()):
            if part is not tree.this:
                yield from _constants(part)
        return
    if isinstance(tree, _EVALUATED) and not isinstance(tree, _TAKEN_APART):
        if is_constant(tree):
            return
        if not any(isinstance(part, _OF_ROWS) or is_declared(part) for part in tree.walk()):
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
            if _is_taken_on(kind):
                yield from (_cast(text, kind) for text in texts)


def _is_taken_on(kind: ColumnType) -> bool:
    return kind.family in _TAKEN_ON or kind.name in _TAKEN_ON_BY_NAME


def _cast(value: exp.Expression, kind: ColumnType) -> exp.Expression:
    return exp.Cast(this=value.copy(), to=_type(kind))


def _is_null(constant: exp.Expr) -> exp.Expression:
    # Not the value itself: a driver may have no form for it, such as for an infinite date.
    return exp.Is(this=exp.Paren(this=constant.copy()), expression=exp.Null())


def _over_no_row(tree: exp.Expression, types: Mapping[str, ColumnType]) -> exp.Expression:
    """Whether the condition holds for one of no rows, whose columns have these types."""
    if any(map(is_declared, tree.walk())):
        return exp.false()
    rows = filtered_by(select_from(inner(_no_rows(types), _ROW), number(1)), [tree])
    return exp.Exists(this=rows)


def _no_rows(types: Mapping[str, ColumnType]) -> exp.Select:
    """No row, of columns with these types."""
    nulls = [named(_cast(exp.Null(), kind), name) for name, kind in types.items()]
    return exp.Select(expressions=nulls or [number(1)], limit=exp.Limit(expression=number(0)))


def _type(kind: ColumnType) -> exp.DataType:
    """The type by its name, as the database itself writes it."""
    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=kind.name)
