"""Sizes of tables and repetition in columns, which guide plans only.

All of it is private. It decides what is computed and how, never with which result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sqlrs.catalog import Table
from sqlrs.records import dataclass

Identity = tuple[str | None, str]
Columns = tuple[Identity, frozenset[str]]


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

    ``frequencies``: of a whole table, the most rows with the same values, none of them NULL, in
    some columns.
    """

    rows: Mapping[Identity, float] = field(default_factory=dict)
    columns: Mapping[tuple[Identity, str], Repetition] = field(default_factory=dict)
    frequencies: Mapping[Columns, int] = field(default_factory=dict)

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

    def most_frequent(self, table: Table, names: frozenset[str]) -> int:
        """A limit of the rows with the same values in some columns, none of them NULL."""
        own = table.identity
        known = (n for (one, read), n in self.frequencies.items() if one == own and read <= names)
        return min(known, default=self.count(table))
