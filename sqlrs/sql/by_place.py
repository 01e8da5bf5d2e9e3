"""What units contribute -> one statement: numbers by unit and group, then by the unit's size.

No id of a unit leaves the database: rows have the place of the unit's size on a public grid, the
ordinals of a group, and sums over all units there.
"""

from __future__ import annotations

from collections.abc import Sequence

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

_SIZE, _PLACE, _UNITS, _BELOW = "size", "place", "units", "below"
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
    name = building.add("owned", rows)
    if not domains:
        return building.finished(_one_number(owned, name, grid))
    return building.finished(_numbers_of_groups(owned, name, grid, building))


def units_by_number(source: Source, most: int, dialect: str) -> exp.Select | None:
    """At most so many rows (number, units that have it); None where numbers hardly repeat."""
    owned = RowsByOwner(source, (), dialect_named(dialect))
    if not owned.counted:
        return None
    rows = owned.rows()
    building = owned.building()
    select = _numbers(owned, building.add("owned", rows))
    select.set("limit", exp.Limit(expression=number(most)))
    return building.finished(select)


def _numbers(owned: RowsByOwner, rows: str) -> exp.Select:
    """The number of each unit; where all of them are counts, each once, with its units.

    Counts repeat, so that few of them have to be placed. Sums would be grouped in vain.
    """
    value: exp.Expression = column(RESULTS, rows)
    if not owned.one_row_each:
        value = exp.Sum(this=value)
    units = filtered_by(select_from(table_named(rows), named(value, RESULTS)), [_owned(rows)])
    if not owned.one_row_each:
        units = grouped_by(units, [column(OWNER, rows)])
    if not owned.counted:
        return units
    repeated = named(exp.Count(this=exp.Star()), _UNITS)
    numbers = select_from(inner(units, "numbers"), column(RESULTS, "numbers"), repeated)
    return grouped_by(numbers, [column(RESULTS, "numbers")])


def _one_number(owned: RowsByOwner, rows: str, grid: Sequence[int]) -> exp.Select:
    """Units and sums at each place; a unit's size is that of its only number."""
    kept = [RESULTS, *([_UNITS] if owned.counted else [])]
    sized = select_from(
        inner(_numbers(owned, rows), "numbers"),
        named(_comparable(exp.Abs(this=column(RESULTS, "numbers")), grid), _SIZE),
        *(column(name, "numbers") for name in kept),
    )
    placed = _placed(sized, kept, grid, owned.dialect)
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

    One text is the whole list: DuckDB plans that in a third of the time of as many cases.
    """
    kind = "DECIMAL(38, 0)" if grid[-1] >= _LARGEST_BIGINT else "BIGINT"
    thresholds = exp.Cast(
        this=exp.Literal.string(f"[{', '.join(map(str, grid))}]"),
        to=exp.DataType.build(f"{kind}[]", dialect="duckdb"),
    )
    select, step = sized, 1 << len(grid).bit_length() - 1
    before: exp.Expression = number(0)
    while step:
        there = exp.Add(this=before, expression=number(step))
        # Behind the list there is NULL, which nothing is above.
        threshold = exp.Anonymous(this="list_extract", expressions=[thresholds.copy(), there])
        above = exp.GT(this=column(_SIZE, "sized"), expression=threshold)
        place = exp.Case(ifs=[exp.If(this=above, true=there.copy())], default=before.copy())
        step //= 2
        columns = [*kept, _SIZE] if step else kept
        select = select_from(
            inner(select, "sized"),
            named(place, _PLACE),
            *(column(name, "sized") for name in columns),
        )
        before = column(_PLACE, "sized")
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
