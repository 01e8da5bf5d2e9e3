"""Leaves -> relations in FROM: tables and their conditions, completions, ranks, running sums."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sqlrs import emit
from sqlrs.catalog import Table
from sqlrs.emit import RESULTS, Places
from sqlrs.identifiers import again, column, identifier
from sqlrs.planning.problem import Leaf, Passing, Ranks
from sqlrs.planning.tree import is_counted
from sqlrs.planning.trees import (
    ascending,
    filtered_by,
    grouped_by,
    inner,
    joined_with,
    named,
    select_from,
    table,
    with_columns,
)
from sqlrs.query import Variable

_INTEGER = exp.DataType.build("INTEGER")

# Keeps a result of a form under a name like the given one, if it is not there yet.
Once = Callable[[Hashable, str, Callable[[], exp.Select]], str]
# What stands in FROM, its columns, the conditions on its rows and their count.
Source = tuple[exp.Expression, Places, list[exp.Expression], list[exp.Expression]]


def leaf_source(leaf: Leaf, alias: str, once: Once) -> Source:
    """A leaf as it is joined."""
    if leaf.maximised:
        columns = column_names(leaf.variables)
        own: Places = {v: column(c, alias) for v, c in columns.items()}
        count: list[exp.Expression] = [column(RESULTS, alias)] if is_counted(leaf) else []
        return inner(_most_frequent(leaf, columns), alias), own, [], count
    if leaf.passing is not None:
        name = once(leaf.label, f"{plain_name(leaf.name)}_beyond", partial(_beyond, leaf.passing))
        own, where = leaf_places(Leaf(leaf.name, name, leaf.columns), alias)
        return aliased(name, alias), own, where, [column(_own_names(leaf.passing)[0], alias)]
    if leaf.ranks is not None:
        not_null = leaf.guarded - leaf.ranks.columns
        name = _by_rank(leaf, leaf.ranks, once)
        leaf = Leaf(leaf.name, name, leaf.columns, guarded=not_null)
    own, where = leaf_places(leaf, alias)
    return _table(leaf.table, alias), own, where, []


def _most_frequent(leaf: Leaf, columns: Mapping[Variable, str]) -> exp.Select:
    """The kept values of a leaf, each with its largest count over the maximised columns."""
    places, where = leaf_places(leaf, leaf.name)
    select = select_from(
        _table(leaf.table, leaf.name),
        *(named(again(places[v]), c) for v, c in sorted(columns.items())),
    )
    select = filtered_by(select, where)
    if not is_counted(leaf):
        return select.distinct(copy=False)
    counted = grouped_by(
        with_columns(select, named(exp.Count(this=exp.Star()), RESULTS)),
        [
            *(again(places[v]) for v in sorted(columns)),
            *(column(c, leaf.name) for c in leaf.maximised),
        ],
    )
    kept = [column(c, "repeated") for _, c in sorted(columns.items())]
    most = named(exp.Max(this=column(RESULTS, "repeated")), RESULTS)
    outer = select_from(inner(counted, "repeated"), *kept, most)
    return grouped_by(outer, map(again, kept))


def _by_rank(leaf: Leaf, ranks: Ranks, once: Once) -> str:
    """The rows of a leaf with ranks in place of values, of which some are above others."""
    return once(leaf.label, f"{plain_name(leaf.name)}_by_rank", partial(_ranked, leaf, ranks, once))


def _ranked(leaf: Leaf, ranks: Ranks, once: Once) -> exp.Select:
    names = [name for name, _ in leaf.columns]
    if ranks.above:
        every = replace(ranks, above=frozenset())
        base = _by_rank(replace(leaf, ranks=every), every, once)
        in_order = [
            exp.GT(this=column(high, base), expression=column(low, base))
            for high, low in sorted(ranks.above)
        ]
        return filtered_by(select_from(table(base), *(column(n, base) for n in names)), in_order)
    by = once(ranks.label[:2], "ranks", partial(_ranks, ranks))
    select = exp.Select(from_=exp.From(this=_table(leaf.table, leaf.name)))
    taken = {leaf.name.lower()}
    for name in names:
        place = column(name, leaf.name)
        if name in ranks.columns:
            alias = free_name(by, taken)
            found = exp.EQ(this=place, expression=column("value", alias))
            select = joined_with(select, aliased(by, alias), [found])
            place = column("rank", alias)
        select = with_columns(select, named(place, name))
    return filtered_by(select, row_conditions(leaf, leaf.name))


def _ranks(ranks: Ranks) -> exp.Select:
    """The values of a column with their ranks, the rarest first."""
    value = column(ranks.column, ranks.table.name)
    order = [ascending(exp.Count(this=exp.Star())), ascending(again(value))]
    rank: exp.Expression = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
    if ranks.narrow:
        rank = exp.Cast(this=rank, to=_INTEGER.copy())
    source = _table(ranks.table, ranks.table.name)
    select = select_from(source, named(value, "value"), named(rank, "rank"))
    return grouped_by(select, [again(value)])


def _beyond(passing: Passing) -> exp.Select:
    """The values of one leaf, each with the number of another one's rows beyond it."""
    names = [name for name, _ in passing.common]
    results, value, number, kind = _own_names(passing)
    # At a value that both have, a sum that stops before the other leaf's rows leaves them out.
    point, counted = (0, 1) if passing.strict else (1, 0)
    both = exp.union(
        _numbered(
            passing.rows,
            {**{n: n for n in names}, value: passing.at},
            {number: emit.number(0), kind: emit.number(point)},
        ),
        _numbered(
            passing.counted,
            {**dict(passing.common), value: passing.beyond},
            {number: exp.Count(this=exp.Star()), kind: emit.number(counted)},
        ),
        distinct=False,
        copy=False,
    )
    order = [exp.Ordered(this=column(value), desc=passing.upwards), ascending(column(kind))]
    total = exp.Window(
        this=exp.Sum(this=column(number)),
        partition_by=[column(name) for name in names],
        order=exp.Order(expressions=order),
        spec=exp.WindowSpec(
            kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"
        ),
    )
    running = select_from(
        exp.Subquery(this=both, alias=exp.TableAlias(this=identifier("together"))),
        *(column(name) for name in (*names, value, kind)),
        named(total, results),
    )
    select = select_from(
        inner(running, "running"),
        *(column(name, "running") for name in names),
        named(column(value, "running"), passing.at),
        column(results, "running"),
    )
    return filtered_by(
        select,
        [
            exp.EQ(this=column(kind, "running"), expression=emit.number(point)),
            exp.GT(this=column(results, "running"), expression=emit.number(0)),
        ],
    )


def _own_names(passing: Passing) -> list[str]:
    """Names that no column of the rows has: of the running sum and of what it is made from."""
    taken = {name.lower() for name in (*(n for n, _ in passing.common), passing.at)}
    return [free_name(name, taken) for name in (RESULTS, "value", "number", "kind")]


def _numbered(
    leaf: Leaf, columns: Mapping[str, str], more: Mapping[str, exp.Expression]
) -> exp.Select:
    """The groups of a leaf's rows by the given columns under new names, with further columns."""
    _, where = leaf_places(leaf, leaf.name)
    keys = [named(column(c, leaf.name), name) for name, c in columns.items()]
    rest = [named(tree, name) for name, tree in more.items()]
    select = filtered_by(select_from(_table(leaf.table, leaf.name), *keys, *rest), where)
    return grouped_by(select, (column(c, leaf.name) for c in columns.values()))


def leaf_places(leaf: Leaf, alias: str) -> tuple[Places, list[exp.Expression]]:
    """The column of each variable of a leaf, and the conditions on its rows."""
    places: Places = {}
    where: list[exp.Expression] = []
    for name, variable in leaf.columns:
        here = column(name, alias)
        if variable in places:
            where.append(exp.EQ(this=again(places[variable]), expression=here))
        else:
            places[variable] = here
            if name in leaf.guarded:
                where.append(exp.Not(this=exp.Is(this=again(here), expression=exp.Null())))
    return places, [*where, *row_conditions(leaf, alias)]


def row_conditions(leaf: Leaf, alias: str) -> list[exp.Expression]:
    """The conditions on single rows of a leaf."""
    return [
        *(
            exp.EQ(this=column(name, alias), expression=emit.literal(constant))
            for name, constant in leaf.constants
        ),
        *(
            emit.filter_condition(f, alias)
            for f in sorted(leaf.filters, key=lambda f: str(f.condition))
        ),
    ]


def column_names(variables: Iterable[Variable]) -> dict[Variable, str]:
    """A column name for each variable that no dialect confuses with another."""
    names: dict[Variable, str] = {}
    taken = {RESULTS}
    for variable in sorted(variables):
        names[variable] = free_name(plain_name(variable.name), taken)
    return names


def plain_name(name: str) -> str:
    """The name with nothing in it that needs quotes."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "_"


def free_name(wanted: str, taken: set[str]) -> str:
    """The wanted name, numbered where it is taken; it is taken from now on."""
    name, number = wanted, 2
    while name.lower() in taken:
        name, number = f"{wanted}_{number}", number + 1
    taken.add(name.lower())
    return name


def aliased(name: str, alias: str) -> exp.Table:
    """A table or a common table expression under an alias."""
    tree = table(name)
    if alias != name:
        tree.set("alias", exp.TableAlias(this=identifier(alias)))
    return tree


def _table(of: Table | str, alias: str) -> exp.Table:
    if isinstance(of, str):
        return aliased(of, alias)
    return exp.Table(
        this=identifier(of.name),
        db=identifier(of.schema) if of.schema else None,
        alias=exp.TableAlias(this=identifier(alias)),
    )
