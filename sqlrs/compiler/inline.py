"""SELECT -> a flat query: its rows taken apart, and what is counted, summed or grouped of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.alternatives import Choices, every
from sqlrs.compiler.flat import FlatQuery, not_null
from sqlrs.compiler.hints import instead_of_selected
from sqlrs.compiler.missing_values import is_missing
from sqlrs.compiler.names import Scope, fold
from sqlrs.compiler.resolving import resolved
from sqlrs.compiler.rows import FilteredRows, RowReader
from sqlrs.compiler.source import Source
from sqlrs.compiler.surroundings import OUTERMOST
from sqlrs.compiler.understand import Understood
from sqlrs.refusals import REFUSALS

if TYPE_CHECKING:
    from sqlrs.compiler.cut import Below


def inline(select: Understood, catalog: Catalog) -> FlatQuery:
    """Take the query apart into tables and conditions, or refuse it."""
    tree, source = select.tree, select.source
    if tree.args.get("distinct"):
        raise source.refusal("distinct", tree.args["distinct"], hint=REFUSALS["limit"].hint)
    reader = RowReader(catalog, source)
    body = reader.body(tree, OUTERMOST)
    distinct = _counted(_only_count(tree, source), body, reader)
    return FlatQuery(tuple(reader.occurrences), tuple(reader.conditions), distinct, source)


def inline_aggregate(
    below: Below, aggregate: exp.Expr, catalog: Catalog, source: Source
) -> list[tuple[int, FlatQuery]]:
    """An aggregate of a cut as a signed sum, each part taken apart; or a refusal."""

    def read(choices: Choices) -> FlatQuery:
        return _aggregated(below, aggregate, RowReader(catalog, source, choices=choices))

    found = every(read)
    for _, flat in found if len(found) > 1 else ():
        if flat.distinct is not None:
            raise source.refusal(
                "distinct",
                aggregate,
                "DISTINCT over an outer join, NOT EXISTS, NOT IN or UNION ALL is not answered",
            )
    return found


def _aggregated(below: Below, aggregate: exp.Expr, reader: RowReader) -> FlatQuery:
    """The rows of a cut, their keys, and what one aggregate makes of them."""
    source = reader.source
    body = reader.body(below.select, OUTERMOST)
    keys = _keys(below, body.scope, source)
    if isinstance(aggregate, exp.Filter):
        reader.condition(aggregate.expression.this, body.scope, OUTERMOST)
        aggregate = aggregate.this
    weight, distinct = None, body.distinct
    if isinstance(aggregate, exp.Sum):
        if distinct is not None:
            raise source.refusal("distinct", aggregate, "a sum over DISTINCT rows")
        weight = resolved(aggregate.this, body.scope, source)
    else:
        distinct = _counted(aggregate, body, reader)
    return FlatQuery(
        tuple(reader.occurrences), tuple(reader.conditions), distinct, source, keys, weight
    )


def _keys(below: Below, scope: Scope, source: Source) -> tuple[exp.Expr, ...]:
    """The keys of the groups; a name that is not surely a key where it stands is refused."""
    keys = tuple(resolved(key, scope, source) for key in below.keys)
    for written, number in below.same:
        if resolved(written, scope, source) != keys[number]:
            raise source.refusal("not_grouped", written)
    for alias, number in below.aliases:
        name = fold(alias.this, source.dialect)
        meanings = [meaning for n, meaning in scope.visible if n == name]
        if is_missing(keys[number]):
            # What an outer join leaves empty is NULL in this part; another part compares it.
            meanings = [meaning for meaning in meanings if not is_missing(meaning)]
        if any(meaning != keys[number] for meaning in meanings):
            message = f"{alias.name} can mean a column of FROM and what is selected"
            raise source.refusal("ambiguous_name", alias, message)
    return keys


def _only_count(select: exp.Select, source: Source) -> exp.Expr:
    if len(select.expressions) != 1:
        second = select.expressions[1] if len(select.expressions) > 1 else select
        raise source.refusal(
            "not_a_count", second, hint="ask each count on its own, and nothing else with it"
        )
    count = select.expressions[0].unalias().unnest()
    if not isinstance(count, exp.Count):
        selected = select.expressions[0]
        raise source.refusal("not_a_count", selected, hint=instead_of_selected(selected))
    return count


def _counted(count: exp.Expr, body: FilteredRows, reader: RowReader) -> tuple[exp.Expr, ...] | None:
    """What is counted DISTINCT, None for all rows; what makes a row count is a condition."""
    source = reader.source
    counted = count.this
    if isinstance(counted, exp.Star):
        return body.distinct
    if counted is None or isinstance(counted.unnest(), exp.Null):
        raise source.refusal("not_a_count", count)
    if isinstance(counted, exp.Distinct):
        return _counted_distinct(counted, body.scope, reader)
    value = resolved(counted, body.scope, source)
    if not isinstance(value.unnest(), exp.Literal | exp.Boolean):
        reader.conditions.append(not_null(value))
    return body.distinct


def _counted_distinct(
    distinct: exp.Distinct, scope: Scope, reader: RowReader
) -> tuple[exp.Expr, ...]:
    columns = distinct.expressions
    # A row value is never null itself, so count(DISTINCT (a, b)) counts rows with nulls too;
    # count(DISTINCT a, b) skips rows with a null, as count(DISTINCT a) does.
    as_row = len(columns) == 1 and isinstance(columns[0], exp.Tuple)
    values = tuple(
        resolved(column, scope, reader.source)
        for column in (columns[0] if as_row else distinct).expressions
    )
    if not as_row:
        reader.conditions += [not_null(value) for value in values]
    return values
