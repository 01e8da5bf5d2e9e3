"""Statements for statistics: sizes, how values repeat, whether each finds what it refers to."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.planning.total_lookups import Inclusion
from sqlrs.sql.index_order import in_index_order
from sqlrs.trees.build import filtered_by, select_from, table_of, union_of
from sqlrs.trees.identifiers import column, identifier


def sizes_of(tables: Sequence[Table]) -> exp.Expression:
    """For each table its position and its number of rows."""
    return union_of([_size(table, i) for i, table in enumerate(tables)])


def repetitions(columns: Sequence[tuple[Table, str, float]]) -> exp.Expression:
    """For each column, of a table sampled at a rate, its position and how its values repeat.

    What is sampled of a table is read once, for all its columns.
    """
    samples: dict[tuple[str | None, str], tuple[Table, float, set[str]]] = {}
    for table, name, rate in columns:
        if rate < 1.0:
            samples.setdefault(table.identity, (table, rate, set()))[2].add(name)
    names = {identity: f"sample_{i}" for i, identity in enumerate(samples)}
    found = union_of(
        [
            _repetition(table, name, None if rate == 1.0 else names[table.identity], i)
            for i, (table, name, rate) in enumerate(columns)
        ]
    )
    ctes = [
        exp.CTE(
            this=select_from(_sampled(table, rate), *map(column, sorted(some))),
            alias=exp.TableAlias(this=identifier(names[identity])),
        )
        for identity, (table, rate, some) in samples.items()
    ]
    if ctes:
        found.set("with_", exp.With(expressions=ctes))
    return found


def largest_frequencies(wanted: Sequence[tuple[Table, frozenset[str]]]) -> exp.Expression:
    """For each table and columns their position and the most rows with the same values there."""
    return union_of([_largest_frequency(*one, i) for i, one in enumerate(wanted)])


def unmatched(inclusion: Inclusion) -> exp.Select:
    """The number of rows that refer to no row of the other table: 0 where the inclusion holds."""
    here, there = "referring", "referred"
    filled = [_filled(name, there) for name in sorted(inclusion.filled)]
    equal = [
        exp.EQ(this=column(other, there), expression=column(own, here))
        for own, other in inclusion.columns
    ]
    found = select_from(table_of(inclusion.other, there), exp.Literal.number(1))
    missing = exp.Not(this=exp.Exists(this=filtered_by(found, [*equal, *filled])))
    own = [_filled(n, here) for n, _ in inclusion.columns if inclusion.table.column(n).nullable]
    every = select_from(table_of(inclusion.table, here), exp.Count(this=exp.Star()))
    return filtered_by(every, [*own, missing])


def _filled(name: str, alias: str) -> exp.Expression:
    return exp.Not(this=exp.Is(this=column(name, alias), expression=exp.Null()))


def _largest_frequency(table: Table, names: frozenset[str], position: int) -> exp.Select:
    nullable = [name for name in sorted(names) if table.column(name).nullable]
    frequencies = (
        exp.select(exp.alias_(exp.Count(this=exp.Star()), "frequency"))
        .from_(table_of(table))
        .where(*(exp.Not(this=exp.Is(this=column(n), expression=exp.Null())) for n in nullable))
        .group_by(*map(column, sorted(names)))
    )
    frequencies = in_index_order(frequencies, table)
    most = exp.Max(this=column("frequency", "frequencies"))
    return exp.select(
        exp.alias_(exp.Literal.number(position), "position"),
        exp.alias_(exp.Coalesce(this=most, expressions=[exp.Literal.number(0)]), "most"),
    ).from_(frequencies.subquery("frequencies"))


def _size(table: Table, position: int) -> exp.Select:
    return exp.select(
        exp.alias_(exp.Literal.number(position), "position"),
        exp.alias_(exp.Count(this=exp.Star()), "size"),
    ).from_(table_of(table))


def _repetition(table: Table, name: str, sample: str | None, position: int) -> exp.Select:
    frequencies = (
        exp.select(exp.alias_(exp.Count(this=exp.Star()), "frequency"))
        .from_(table_of(table) if sample is None else identifier(sample))
        .where(exp.Not(this=exp.Is(this=column(name), expression=exp.Null())))
        .group_by(column(name))
    )
    if sample is None:
        frequencies = in_index_order(frequencies, table)
    frequency = column("frequency", "frequencies")
    return exp.select(
        exp.alias_(exp.Literal.number(position), "position"),
        exp.alias_(exp.Count(this=exp.Star()), "distinct_values"),
        *(
            exp.alias_(exp.Coalesce(this=value, expressions=[exp.Literal.number(0)]), name)
            for value, name in (
                (exp.Sum(this=frequency), "seen"),
                (exp.Sum(this=exp.Mul(this=frequency, expression=frequency.copy())), "squares"),
                (exp.Max(this=frequency.copy()), "most"),
            )
        ),
    ).from_(frequencies.subquery("frequencies"))


def _sampled(table: Table, rate: float) -> exp.Table:
    tree = table_of(table)
    tree.set(
        "sample",
        exp.TableSample(
            method=exp.Var(this="BERNOULLI"),
            percent=exp.Literal.number(f"{rate * 100:.6f}"),
            seed=exp.Literal.number(1),
        ),
    )
    return tree
