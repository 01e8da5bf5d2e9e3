"""What units contribute -> one statement: numbers by unit and group, then by the unit's size.

No id of a unit leaves the database: rows have the place of the unit's size on a public grid, the
ordinals of a group, and sums over all units there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.dialects.base import Dialect
from sqlrs.measures import KeyDomain
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.rows_by_owner import OWNER, RowsByOwner, Source
from sqlrs.trees.build import (
    filtered_by,
    grouped_by,
    inner,
    joined_with,
    named,
    number,
    select_from,
    table_named,
    union_of,
)
from sqlrs.trees.identifiers import column
from sqlrs.trees.naming import RESULTS
from sqlrs.trees.totals import decimal, product

_SIZE, _PLACE, _UNITS, _BELOW, _LIST = "size", "place", "units", "below", "thresholds"
_LARGEST_BIGINT = 2**63 - 1


def contributions_by_place(
    source: Source, domains: Sequence[KeyDomain], grid: Sequence[int], dialect: str
) -> exp.Select:
    """Rows (place, ordinals…, units, units below 0, sum); places are those of ``Contributions``.

    With domains, units stand in rows whose ordinals are -1, and sums in others.
    """
    owned = RowsByOwner(source, domains, dialect_named(dialect))
    rows = owned.rows()
    building = owned.building()
    if not domains:
        return building.finished(_one_number(owned, rows, grid))
    name = building.add("owned", rows)
    return building.finished(_numbers_of_groups(owned, name, grid, building))


def units_by_number(source: Source, most: int, dialect: str) -> exp.Select | None:
    """At most so many rows (number, units that have it); None where numbers hardly repeat."""
    owned = RowsByOwner(source, (), dialect_named(dialect))
    if not owned.counted:
        return None
    select = _numbers(owned, owned.rows())
    select.set("limit", exp.Limit(expression=number(most)))
    return owned.building().finished(select)


def units_near_each_other(source: Source, grid: Sequence[int], dialect: str) -> exp.Select | None:
    """Rows (least size, largest size, units, units below 0, sum) of units of nearly the same size.

    None where that is not quick. What is near is said by a logarithm in floating point: nobody may
    rely on it, and who places a row by its sizes does not.
    """
    owned = RowsByOwner(source, (), dialect_named(dialect))
    if owned.counted or not owned.dialect.guesses_places:
        return None
    sized = _sized(owned, owned.rows(), [RESULTS], grid)
    size, net = column(_SIZE, "sized"), column(RESULTS, "sized")
    about = exp.Cast(
        this=exp.Greatest(this=size.copy(), expressions=[number(1)], ignore_nulls=True),
        to=exp.DataType.build("DOUBLE"),
    )
    near = exp.Ceil(
        this=exp.Mul(this=number(4), expression=exp.Anonymous(this="log2", expressions=[about]))
    )
    select = select_from(
        inner(sized, "sized"),
        named(exp.Min(this=size), "least"),
        named(exp.Max(this=size.copy()), "largest"),
        *_counted_units(net),
        named(exp.Sum(this=net.copy()), RESULTS),
    )
    return owned.building().finished(grouped_by(select, [near]))


def _sized(
    owned: RowsByOwner, rows: exp.Expression, kept: Sequence[str], grid: Sequence[int]
) -> exp.Select:
    """The numbers of the units with their sizes."""
    return select_from(
        inner(_numbers(owned, rows), "numbers"),
        named(_comparable(exp.Abs(this=column(RESULTS, "numbers")), grid), _SIZE),
        *(column(name, "numbers") for name in kept),
    )


def _numbers(owned: RowsByOwner, rows: exp.Expression) -> exp.Select:
    """The number of each unit; where all of them are counts, each once, with its units.

    Counts repeat, so that few of them have to be placed. Sums would be grouped in vain.
    """
    value: exp.Expression = column(RESULTS, "owned")
    if not owned.one_row_each:
        value = exp.Sum(this=value)
    if not owned.counted:
        # A sum over no rows at all, which others are multiplied by, is NULL.
        value = exp.Coalesce(this=value, expressions=[number(0)])
    units = filtered_by(
        select_from(inner(cast(exp.Query, rows), "owned"), named(value, RESULTS)), [_owned("owned")]
    )
    if not owned.one_row_each:
        units = grouped_by(units, [column(OWNER, "owned")])
    if not owned.counted:
        return units
    repeated = named(exp.Count(this=exp.Star()), _UNITS)
    numbers = select_from(inner(units, "numbers"), column(RESULTS, "numbers"), repeated)
    return grouped_by(numbers, [column(RESULTS, "numbers")])


def _one_number(owned: RowsByOwner, rows: exp.Expression, grid: Sequence[int]) -> exp.Select:
    """Units and sums at each place; a unit's size is that of its only number."""
    kept = [RESULTS, *([_UNITS] if owned.counted else [])]
    placed = _placed(_sized(owned, rows, kept, grid), kept, grid, owned.dialect)
    value = column(RESULTS, "placed")
    found = [*_counted_units(value), named(exp.Sum(this=value.copy()), RESULTS)]
    if owned.counted:
        times = column(_UNITS, "placed")
        negative = exp.LT(this=value.copy(), expression=number(0))
        below = exp.Case(ifs=[exp.If(this=negative, true=times.copy())], default=number(0))
        found = [
            named(exp.Sum(this=times), _UNITS),
            named(exp.Sum(this=below), _BELOW),
            named(exp.Sum(this=product([value, times])), RESULTS),
        ]
    select = select_from(inner(placed, "placed"), column(_PLACE, "placed"), *found)
    return grouped_by(select, [column(_PLACE, "placed")])


def _numbers_of_groups(
    owned: RowsByOwner, rows: str, grid: Sequence[int], building: StatementBuilder
) -> exp.Select:
    """Units at each place, and the sums of each group there."""
    if not owned.one_sign:
        # Numbers of different signs in one group are one number before its sign is left out.
        keys = [column(name, rows) for name in (OWNER, *owned.ordinals)]
        total = named(exp.Sum(this=column(RESULTS, rows)), RESULTS)
        select = filtered_by(select_from(table_named(rows), *keys, total), [_owned(rows)])
        rows = building.add("per_unit_and_group", grouped_by(select, [key.copy() for key in keys]))
    size = exp.Sum(this=exp.Abs(this=column(RESULTS, rows)))
    net = exp.Sum(this=column(RESULTS, rows))
    sized = select_from(
        table_named(rows),
        column(OWNER, rows),
        named(_comparable(size, grid), _SIZE),
        named(net, RESULTS),
    )
    sized = grouped_by(filtered_by(sized, [_owned(rows)]), [column(OWNER, rows)])
    placed = building.add("placed", _placed(sized, [OWNER, RESULTS], grid, owned.dialect))
    units = select_from(
        table_named(placed),
        column(_PLACE, placed),
        *(named(number(-1), ordinal) for ordinal in owned.ordinals),
        *_counted_units(column(RESULTS, placed)),
        named(number(0), RESULTS),
    )
    keys = [column(_PLACE, placed), *(column(ordinal, rows) for ordinal in owned.ordinals)]
    sums = select_from(
        table_named(rows), *keys, number(0), number(0), exp.Sum(this=column(RESULTS, rows))
    )
    same = exp.EQ(this=column(OWNER, rows), expression=column(OWNER, placed))
    found = building.add(
        "found",
        union_of(
            [
                grouped_by(units, [column(_PLACE, placed)]),
                grouped_by(
                    joined_with(sums, table_named(placed), [same]), [key.copy() for key in keys]
                ),
            ]
        ),
    )
    columns = [_PLACE, *owned.ordinals, _UNITS, _BELOW, RESULTS]
    return select_from(table_named(found), *(column(name, found) for name in columns))


def _owned(rows: str) -> exp.Expression:
    """Rows of nobody take part in nothing."""
    return exp.Not(this=exp.Is(this=column(OWNER, rows), expression=exp.Null()))


def _counted_units(net: exp.Expression) -> list[exp.Expression]:
    negative = exp.LT(this=net, expression=number(0))
    return [
        named(exp.Count(this=exp.Star()), _UNITS),
        named(exp.Count(this=exp.Case(ifs=[exp.If(this=negative, true=number(1))])), _BELOW),
    ]


def _comparable(size: exp.Expression, grid: Sequence[int]) -> exp.Expression:
    """The size in a type in which it is compared exactly and soon; beyond the grid, just beyond."""
    size, behind = decimal(size), grid[-1] + 1
    if behind > _LARGEST_BIGINT:
        return size
    small = exp.Least(this=size, expressions=[decimal(number(behind))])
    return exp.Cast(this=small, to=exp.DataType.build("BIGINT"))


def _placed(
    sized: exp.Select, kept: Sequence[str], grid: Sequence[int], dialect: Dialect
) -> exp.Select:
    """Sizes with their places: the first threshold that is not below, one more where none is."""
    if dialect.looks_up_in_lists:
        return _counted_in_list(sized, kept, grid)
    return select_from(
        inner(sized, "sized"),
        named(_place(column(_SIZE, "sized"), grid), _PLACE),
        *(column(name, "sized") for name in kept),
    )


def _counted_in_list(sized: exp.Select, kept: Sequence[str], grid: Sequence[int]) -> exp.Select:
    """The place is the number of thresholds below a size, found by halves in a list of them.

    One text is the whole list, as a column: DuckDB plans that in a tenth of the time of as many
    cases, and sooner than a constant, which it would read again for each half.
    """
    kind = "DECIMAL(38, 0)" if grid[-1] >= _LARGEST_BIGINT else "BIGINT"
    thresholds = exp.Cast(
        this=exp.Literal.string(f"[{', '.join(map(str, grid))}]"),
        to=exp.DataType.build(f"{kind}[]", dialect="duckdb"),
    )
    columns = [*kept, _SIZE]
    listed = exp.Select(expressions=[named(thresholds, _LIST)])
    select = joined_with(
        select_from(
            inner(sized, "sized"),
            named(number(0), _PLACE),
            *(column(name, "sized") for name in columns),
            column(_LIST, "grid"),
        ),
        inner(listed, "grid"),
        [],
    )
    step = 1 << len(grid).bit_length() - 1
    while step:
        before = column(_PLACE, "sized")
        there = exp.Add(this=before.copy(), expression=number(step))
        # Behind the list there is NULL, which nothing is above.
        threshold = exp.Anonymous(this="list_extract", expressions=[column(_LIST, "sized"), there])
        above = exp.GT(this=column(_SIZE, "sized"), expression=threshold)
        place = exp.Case(ifs=[exp.If(this=above, true=there.copy())], default=before)
        step //= 2
        select = select_from(
            inner(select, "sized"),
            named(place, _PLACE),
            *(column(name, "sized") for name in ([*columns, _LIST] if step else kept)),
        )
    return select


def _place(size: exp.Column, grid: Sequence[int]) -> exp.Expression:
    """The first threshold that is not below a size, found by halves; one more where none is."""

    def wide(threshold: int) -> exp.Expression:
        return decimal(number(threshold)) if grid[-1] >= _LARGEST_BIGINT else number(threshold)

    def between(low: int, high: int) -> exp.Expression:
        if low == high:
            return number(low)
        middle = (low + high) // 2
        small = exp.LTE(this=size.copy(), expression=wide(grid[middle]))
        case = exp.If(this=small, true=between(low, middle))
        return exp.Case(ifs=[case], default=between(middle + 1, high))

    return between(0, len(grid))
