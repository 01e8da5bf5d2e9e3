"""Sizes of tables and repetition in columns: read once per snapshot, to guide plans only.

All of it is private. It decides what is computed and how, never with which result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.engines.base import Snapshot
from sqlrs.equalities import behave_alike
from sqlrs.identifiers import column, identifier
from sqlrs.query import Query, Variable

# Below this many rows every plan is quick, and above the other one a sample tells enough.
_SMALL = 2_000
_SAMPLE = 1_000_000

_Identity = tuple[str | None, str]


@dataclass(frozen=True)
class Repetition:
    """How values repeat in a column: distinct values, Σ frequency², the largest frequency."""

    distinct: float
    squares: float
    most: float

    def skew(self, rows: float) -> float:
        """Σ frequency² over what it is if all values are equally frequent: 1 or more."""
        return max(self.squares * self.distinct / rows**2, 1.0)

    @classmethod
    def unique(cls, rows: float) -> Repetition:
        """Every value once."""
        return cls(rows, rows, 1.0)

    @classmethod
    def guessed(cls, rows: float) -> Repetition:
        """Without any knowledge: each value ten times, some ten times as often."""
        return cls(max(rows / 10, 1.0), min(rows * 100, rows * rows), min(rows, 1000.0))


@dataclass(frozen=True, repr=False)
class Statistics:
    """Rows of each table, the repetition in each joined column, and what of it is exact.

    ``frequencies`` are the largest ones of columns that were read as a whole.
    """

    rows: Mapping[_Identity, float] = field(default_factory=dict)
    columns: Mapping[tuple[_Identity, str], Repetition] = field(default_factory=dict)
    frequencies: Mapping[tuple[_Identity, str], int] = field(default_factory=dict)

    GUESSED_ROWS = 100_000.0

    def __repr__(self) -> str:
        return "Statistics(private)"

    def size(self, table: Table) -> float:
        """The number of rows, never below 1."""
        return max(self.rows.get(table.identity, self.GUESSED_ROWS), 1.0)

    def repetition(self, table: Table, name: str) -> Repetition:
        """The repetition in a column, guessed where it was not read."""
        known = self.columns.get((table.identity, name))
        if known is not None:
            return known
        rows = self.size(table)
        if frozenset({name}) in table.keys:
            return Repetition.unique(rows)
        return Repetition.guessed(rows)

    def count(self, table: Table) -> int:
        """The exact number of rows."""
        return int(self.rows[table.identity])

    def most_frequent(self, table: Table, name: str) -> int:
        """A limit of the rows with one value in a column: exact where the column was read."""
        return self.frequencies.get((table.identity, name), self.count(table))

    @classmethod
    def read(cls, snapshot: Snapshot, query: Query) -> Statistics:
        """Two statements: the sizes of all tables, then the joined columns of those that matter."""
        tables = list({atom.table.identity: atom.table for atom in query.atoms}.values())
        sizes = snapshot.rows(_union(_size(t, i) for i, t in enumerate(tables)))
        counted = {int(cast(int, i)): float(cast(int, n)) for i, n in sizes}
        rows = {table.identity: counted[i] for i, table in enumerate(tables)}
        wanted = [
            (table, name)
            for table, name in _joined_columns(query)
            if rows[table.identity] > _SMALL and frozenset({name}) not in table.keys
        ]
        columns: dict[tuple[_Identity, str], Repetition] = {}
        frequencies: dict[tuple[_Identity, str], int] = {}
        if wanted:
            rates = [min(1.0, _SAMPLE / rows[table.identity]) for table, _ in wanted]
            found = snapshot.rows(
                _union(
                    _repetition(table, name, rate, i)
                    for i, ((table, name), rate) in enumerate(zip(wanted, rates, strict=True))
                )
            )
            for row in found:
                i, distinct, seen, squares, most = (int(cast(int, v)) for v in row)
                table, name = wanted[i]
                columns[table.identity, name] = _scaled(distinct, seen, squares, most, rates[i])
                # Of other types, groups may be finer than what a join takes for equal.
                if rates[i] == 1.0 and behave_alike([table.column(name).type]):
                    frequencies[table.identity, name] = most
        return cls(rows, columns, frequencies)


def _joined_columns(query: Query) -> list[tuple[Table, str]]:
    found: dict[tuple[_Identity, str], tuple[Table, str]] = {}
    for atom in query.atoms:
        for name, term in atom.terms:
            if isinstance(term, Variable) and term in query.never_null:
                found[atom.table.identity, name] = (atom.table, name)
    return list(found.values())


def _size(table: Table, position: int) -> exp.Select:
    return exp.select(
        exp.alias_(exp.Literal.number(position), "position"),
        exp.alias_(exp.Count(this=exp.Star()), "size"),
    ).from_(_source(table, 1.0))


def _repetition(table: Table, name: str, rate: float, position: int) -> exp.Select:
    frequencies = (
        exp.select(exp.alias_(exp.Count(this=exp.Star()), "frequency"))
        .from_(_source(table, rate))
        .where(exp.Not(this=exp.Is(this=column(name), expression=exp.Null())))
        .group_by(column(name))
    )
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


def _source(table: Table, rate: float) -> exp.Table:
    tree = exp.Table(
        this=identifier(table.name), db=identifier(table.schema) if table.schema else None
    )
    if rate < 1.0:
        tree.set(
            "sample",
            exp.TableSample(
                method=exp.Var(this="BERNOULLI"),
                percent=exp.Literal.number(f"{rate * 100:.6f}"),
                seed=exp.Literal.number(1),
            ),
        )
    return tree


def _union(selects: Iterable[exp.Select]) -> exp.Expression:
    first, *rest = selects
    tree: exp.Expression = first
    for select in rest:
        tree = exp.union(tree, select, distinct=False, copy=False)
    return tree


def _scaled(distinct: int, seen: int, squares: int, most: int, rate: float) -> Repetition:
    """The repetition in a column from that in a sample, where rate² of all equal pairs survive."""
    if rate == 1.0 or distinct == 0:
        return Repetition(max(distinct, 1.0), max(squares, 1.0), max(most, 1.0))
    rows = seen / rate
    return Repetition(
        distinct=_before_sampling(distinct, seen, rows),
        squares=max((squares - seen) / rate**2 + rows, rows),
        most=max(most / rate, 1.0),
    )


def _before_sampling(distinct: float, seen: float, rows: float) -> float:
    """The d of which ``seen`` draws are expected to hit ``distinct``, by bisection."""
    low, high = distinct, rows
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if middle * -math.expm1(-seen / middle) < distinct else (low, middle)
        )
    return high
