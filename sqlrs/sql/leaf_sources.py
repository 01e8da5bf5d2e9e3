"""Leaves -> relations in FROM: tables and their conditions, completions, ranks, running sums."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sqlrs.planning.leaves import (
    Columns,
    Completions,
    Leaf,
    OfTable,
    Passing,
    Picked,
    Ranked,
    Ranks,
    RunningSum,
    SentRows,
    TableRows,
)
from sqlrs.query import Variable
from sqlrs.trees.build import (
    SENT_BY,
    ascending,
    filtered_by,
    grouped_by,
    inner,
    joined_with,
    named,
    rows_of,
    select_from,
    table_named,
    with_columns,
)
from sqlrs.trees.build import number as number_of
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import again, column, identifier
from sqlrs.trees.naming import RESULTS, column_names, free_name, plain_name
from sqlrs.trees.predicates import Places, filter_condition
from sqlrs.trees.totals import product, row_weights, summed

_INTEGER = exp.DataType.build("INTEGER")

# Keeps a result of a form under a name like the given one, if it is not there yet.
Once = Callable[[Hashable, str, Callable[[], exp.Select]], str]
# What stands in FROM, its columns, the conditions on its rows and their count.
LeafSource = tuple[exp.Expression, Places, list[exp.Expression], list[exp.Expression]]


def leaf_source(leaf: Leaf, alias: str, once: Once) -> LeafSource:
    """A leaf as it is joined."""
    match leaf:
        case SentRows():
            own, _ = _places(leaf.columns, alias)
            return inner(_sent(leaf, alias), alias), own, [], []
        case TableRows():
            own, where = leaf_places(leaf, alias)
            return _rows(leaf, alias), own, where, row_weights(leaf.weights, leaf.table, alias)
        case Completions():
            columns = column_names(leaf.variables)
            own = {v: column(c, alias) for v, c in columns.items()}
            count: list[exp.Expression] = [column(RESULTS, alias)] if leaf.counted else []
            return inner(_most_frequent(leaf, columns), alias), own, [], count
        case RunningSum(passing=passing):
            beyond = f"{plain_name(leaf.name)}_beyond"
            name = once(leaf.label, beyond, partial(_beyond, passing))
            own, where = _places(leaf.columns, alias)
            return aliased(name, alias), own, where, [column(_own_names(passing)[0], alias)]
        case Ranked():
            name = _by_rank(leaf, once)
            own, where = _places(leaf.columns, alias, leaf.guarded - leaf.ranks.columns)
            weight: list[exp.Expression] = [column(_weight_name(leaf), alias)]
            return aliased(name, alias), own, where, weight if leaf.counted else []
    raise TypeError(f"there is no source for a leaf of kind {type(leaf).__name__}")


def picked_source(leaf: Picked, name: str, alias: str) -> LeafSource:
    """A leaf whose rows are kept under a name, as it is joined."""
    own, where = _places(leaf.columns, alias)
    return aliased(name, alias), own, where, []


def _sent(leaf: SentRows, alias: str) -> exp.Select:
    """The rows of a leaf, marked with the column by which they are sent to tasks."""
    own, where = leaf_places(leaf, alias)
    select = select_from(_rows(leaf, alias), *(again(place) for place in own.values()))
    select.meta[SENT_BY] = leaf.by
    return filtered_by(select, where)


def _most_frequent(leaf: Completions, columns: Mapping[Variable, str]) -> exp.Select:
    """The kept values of a leaf, each with its largest count over the maximised columns."""
    places, where = leaf_places(leaf, leaf.name)
    select = select_from(
        _rows(leaf, leaf.name),
        *(named(again(places[v]), c) for v, c in sorted(columns.items())),
    )
    select = filtered_by(select, where)
    weights = row_weights(leaf.weights, leaf.table, leaf.name)
    if not leaf.counted:
        return select.distinct(copy=False)
    if leaf.keys:
        heaviest = named(exp.Max(this=product(weights)), RESULTS)
        return grouped_by(
            with_columns(select, heaviest), [again(places[v]) for v in sorted(columns)]
        )
    counted = grouped_by(
        with_columns(select, named(summed(weights), RESULTS)),
        [
            *(again(places[v]) for v in sorted(columns)),
            *(column(c, leaf.name) for c in leaf.maximised),
        ],
    )
    kept = [column(c, "repeated") for _, c in sorted(columns.items())]
    most = named(exp.Max(this=column(RESULTS, "repeated")), RESULTS)
    outer = select_from(inner(counted, "repeated"), *kept, most)
    return grouped_by(outer, map(again, kept))


def _by_rank(leaf: Ranked, once: Once) -> str:
    """The rows of a leaf with ranks in place of values, of which some are above others."""
    return once(leaf.label, f"{plain_name(leaf.name)}_by_rank", partial(_ranked, leaf, once))


def _ranked(leaf: Ranked, once: Once) -> exp.Select:
    names, ranks = [name for name, _ in leaf.columns], leaf.ranks
    if ranks.above:
        base = _by_rank(replace(leaf, ranks=replace(ranks, above=frozenset())), once)
        in_order = [
            exp.GT(this=column(high, base), expression=column(low, base))
            for high, low in sorted(ranks.above)
        ]
        kept = [*names, _weight_name(leaf)] if leaf.counted else names
        return filtered_by(
            select_from(table_named(base), *(column(n, base) for n in kept)), in_order
        )
    by = once(ranks.label[:2], "ranks", partial(_ranks, ranks))
    select = exp.Select(from_=exp.From(this=_rows(leaf, leaf.name)))
    taken = {leaf.name.lower()}
    for name in names:
        place = column(name, leaf.name)
        if name in ranks.columns:
            alias = free_name(by, taken)
            found = exp.EQ(this=place, expression=column("value", alias))
            select = joined_with(select, aliased(by, alias), [found])
            place = column("rank", alias)
        select = with_columns(select, named(place, name))
    if leaf.counted:
        weight = product(row_weights(leaf.weights, leaf.table, leaf.name))
        select = with_columns(select, named(weight, _weight_name(leaf)))
    return filtered_by(select, row_conditions(leaf, leaf.name))


def _weight_name(leaf: Ranked) -> str:
    """A name for the product of a row's weights that no column of the leaf has."""
    return free_name(RESULTS, {name.lower() for name, _ in leaf.columns})


def _ranks(ranks: Ranks) -> exp.Select:
    """The values of a column with their ranks, the rarest first."""
    value = column(ranks.column, ranks.table.name)
    order = [ascending(exp.Count(this=exp.Star())), ascending(again(value))]
    rank: exp.Expression = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
    if ranks.narrow:
        rank = exp.Cast(this=rank, to=_INTEGER.copy())
    source = rows_of(ranks.table, [ranks.column], ranks.table.name)
    select = select_from(source, named(value, "value"), named(rank, "rank"))
    return grouped_by(select, [again(value)])


def _beyond(passing: Passing) -> exp.Select:
    """The values of one leaf, each with the number of another one's rows beyond it."""
    names = [name for name, _ in passing.common]
    results, value, number, kind = _own_names(passing)
    # At a value that both have, a sum that stops before the other leaf's rows leaves them out.
    point, counted = (0, 1) if passing.strict else (1, 0)
    summand = passing.counted
    weights = row_weights(summand.weights, summand.table, summand.name)
    both = exp.union(
        _numbered(
            passing.rows,
            {**{n: n for n in names}, value: passing.at},
            {number: number_of(0), kind: number_of(point)},
        ),
        _numbered(
            passing.counted,
            {**dict(passing.common), value: passing.beyond},
            {number: summed(weights), kind: number_of(counted)},
        ),
        distinct=False,
        copy=False,
    )
    running = _running(both, passing)
    select = select_from(
        inner(running, "running"),
        *(column(name, "running") for name in names),
        named(column(value, "running"), passing.at),
        column(results, "running"),
    )
    return filtered_by(
        select,
        [
            exp.EQ(this=column(kind, "running"), expression=number_of(point)),
            exp.GT(this=column(results, "running"), expression=number_of(0)),
        ],
    )


def _running(both: exp.Expression, passing: Passing) -> exp.Select:
    """The rows of both leaves with the number of the other one's rows up to here."""
    names = [name for name, _ in passing.common]
    results, value, number, kind = _own_names(passing)
    order = [exp.Ordered(this=column(value), desc=passing.upwards), ascending(column(kind))]
    total = exp.Window(
        this=exp.Sum(this=column(number)),
        partition_by=[column(name) for name in names],
        order=exp.Order(expressions=order),
        spec=exp.WindowSpec(
            kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"
        ),
    )
    return select_from(
        exp.Subquery(this=both, alias=exp.TableAlias(this=identifier("together"))),
        *(column(name) for name in (*names, value, kind)),
        named(total, results),
    )


def _own_names(passing: Passing) -> list[str]:
    """Names that no column of the rows has: of the running sum and of what it is made from."""
    taken = {name.lower() for name in (*(n for n, _ in passing.common), passing.at)}
    return [free_name(name, taken) for name in (RESULTS, "value", "number", "kind")]


def _numbered(
    leaf: TableRows, columns: Mapping[str, str], more: Mapping[str, exp.Expression]
) -> exp.Select:
    """The groups of a leaf's rows by the given columns under new names, with further columns."""
    _, where = leaf_places(leaf, leaf.name)
    keys = [named(column(c, leaf.name), name) for name, c in columns.items()]
    rest = [named(tree, name) for name, tree in more.items()]
    select = filtered_by(select_from(_rows(leaf, leaf.name), *keys, *rest), where)
    return grouped_by(select, (column(c, leaf.name) for c in columns.values()))


def _rows(leaf: OfTable, alias: str) -> exp.Expression:
    """What stands in FROM for the rows of a leaf."""
    read = {name for name, _ in (*leaf.columns, *leaf.constants)}.union(
        leaf.guarded, leaf.weights, *(f.columns for f in leaf.filters)
    )
    if isinstance(leaf, Completions):
        read.update(leaf.maximised)
    return rows_of(leaf.table, read, alias)


def leaf_places(leaf: OfTable, alias: str) -> tuple[Places, list[exp.Expression]]:
    """The column of each variable of a leaf, and the conditions on its rows."""
    places, where = _places(leaf.columns, alias, leaf.guarded)
    return places, [*where, *row_conditions(leaf, alias)]


def _places(
    columns: Columns, alias: str, guarded: Collection[str] = ()
) -> tuple[Places, list[exp.Expression]]:
    places: Places = {}
    where: list[exp.Expression] = []
    for name, variable in columns:
        here = column(name, alias)
        if variable in places:
            where.append(exp.EQ(this=again(places[variable]), expression=here))
        else:
            places[variable] = here
            if name in guarded:
                where.append(exp.Not(this=exp.Is(this=again(here), expression=exp.Null())))
    return places, where


def row_conditions(leaf: OfTable, alias: str) -> list[exp.Expression]:
    """The conditions on single rows of a leaf."""
    return [
        *(
            exp.EQ(this=column(name, alias), expression=literal(constant))
            for name, constant in leaf.constants
        ),
        *(filter_condition(f, alias) for f in sorted(leaf.filters, key=lambda f: str(f.condition))),
    ]


def aliased(name: str, alias: str) -> exp.Table:
    """A table or a common table expression under an alias."""
    return table_named(name, alias=alias if alias != name else None)
