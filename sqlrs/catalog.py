"""What is public about the database: tables, columns, types, keys, and which tables are private."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from sqlrs.errors import UsageError


class Family(Enum):
    """Types whose values compare equal exactly when they are the same value."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TZ = "timestamp with time zone"
    BOOLEAN = "boolean"
    OTHER = "other"


_ORDERED = frozenset(Family) - {Family.BOOLEAN, Family.OTHER}
_APART = frozenset({Family.FLOAT, Family.OTHER})
_DISCRETE = frozenset({Family.INTEGER, Family.DATE})


@dataclass(frozen=True)
class ColumnType:
    """A column's type: its family decides what it may be joined and compared with."""

    family: Family
    name: str
    collation: str | None = None

    def joins_with(self, other: ColumnType) -> bool:
        """Whether equality between the types is equality of values: one variable may span both."""
        if self.collation != other.collation or self.family is not other.family:
            return False
        # Single precision rounds the literal it is compared with, double precision does not: what
        # x <= 0.1 means would depend on the column that stands for x.
        return self.family not in _APART or self.name == other.name

    @property
    def ordered(self) -> bool:
        """Whether < between two values of this type is understood."""
        return self.family in _ORDERED

    @property
    def discrete(self) -> bool:
        """Whether there is a next value, so that nothing lies between two neighbours."""
        return self.family in _DISCRETE


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    type: ColumnType
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A physical table. ``keys`` hold column sets that are unique and never null."""

    name: str
    columns: tuple[Column, ...]
    keys: frozenset[frozenset[str]] = frozenset()
    private: bool = True
    schema: str | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not names:
            raise UsageError(f"table {self.name} has no columns")
        if len(set(names)) != len(names):
            raise UsageError(f"table {self.name} has two columns of the same name")
        for key in self.keys:
            unknown = sorted(key - set(names))
            if unknown or not key:
                raise UsageError(
                    f"key ({', '.join(sorted(key))}) of {self.label} does not name its columns",
                    hint=f"{self.name} has the columns {', '.join(names)}",
                )

    @property
    def identity(self) -> tuple[str | None, str]:
        """What makes two occurrences the same physical table."""
        return (self.schema, self.name)

    @property
    def label(self) -> str:
        """The name for people, with its schema."""
        return self.name if self.schema is None else f"{self.schema}.{self.name}"

    def column(self, name: str) -> Column:
        """The column called ``name``, which must exist."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.label} has no column {name}")

    def with_keys(self, keys: Iterable[Iterable[str]]) -> Table:
        """This table with further keys, whose columns then are never null."""
        added = frozenset(frozenset(key) for key in keys)
        never_null = frozenset[str]().union(*added)
        columns = tuple(
            replace(c, nullable=c.nullable and c.name not in never_null) for c in self.columns
        )
        return replace(self, columns=columns, keys=self.keys | added)


@dataclass(frozen=True)
class View:
    """A view: a name for a query text in the catalog's dialect."""

    name: str
    sql: str
    schema: str | None = None


@dataclass(frozen=True)
class Catalog:
    """The tables and views an analyst may name, and the dialect their SQL is written in.

    ``functions`` names further functions, in lower case, that the owner knows to be deterministic
    and free of side effects.
    """

    dialect: str
    tables: tuple[Table, ...]
    views: tuple[View, ...] = ()
    search_path: tuple[str, ...] = ("main",)
    functions: frozenset[str] = frozenset()

    def declare(
        self,
        *,
        private: Iterable[str] | None = None,
        public: Iterable[str] = (),
        keys: Mapping[str, Iterable[Iterable[str]]] | None = None,
    ) -> Catalog:
        """The catalog as the owner declares it: a table not declared public is private."""
        private_names, public_names = set(private or ()), set(public)
        known = {t.name for t in self.tables} | {t.label for t in self.tables}
        for name in sorted((private_names | public_names | set(keys or ())) - known):
            raise UsageError(
                f"there is no table {name}",
                hint=f"the tables are {', '.join(sorted(t.label for t in self.tables)) or 'none'}",
            )
        for name in sorted(private_names & public_names):
            raise UsageError(f"table {name} is declared both private and public")

        def declared(table: Table) -> Table:
            names = {table.name, table.label}
            if names & private_names and names & public_names:
                raise UsageError(f"table {table.label} is declared both private and public")
            table = replace(table, private=not names & public_names)
            for name in names & set(keys or ()):
                table = table.with_keys((keys or {})[name])
            return table

        return replace(self, tables=tuple(declared(table) for table in self.tables))
