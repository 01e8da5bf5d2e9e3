"""What is public about the database: tables, columns, types, keys, and which tables are private."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.units import Link, Owner, Unit

Value = int | str | bool | Decimal | date | datetime


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
    OPAQUE = "opaque"
    """Not even equal values, or NULL, can be told: such a column is in the table and not asked."""


_ORDERED = frozenset(Family) - {Family.BOOLEAN, Family.OTHER, Family.OPAQUE}
_APART = frozenset({Family.FLOAT, Family.OTHER})

# Each distance takes so many steps: without an end to it a release would.
MOST_ROWS_PER_UNIT = 100


@dataclass(frozen=True)
class ColumnType:
    """A column's type: its family decides what it may be joined and compared with.

    ``places``: how many decimal places its values have, where its name does not say it.
    """

    family: Family
    name: str
    collation: str | None = None
    places: int | None = field(default=None, compare=False, repr=False)

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


@dataclass(frozen=True)
class Listed:
    """All values that a column can hold beside NULL: an enumeration, CHECK (c IN …), a list."""

    values: tuple[Value, ...]
    origin: str


@dataclass(frozen=True)
class Range:
    """All values that a column can hold beside NULL lie between two of its type, both included."""

    low: Value
    high: Value
    origin: str


@dataclass(frozen=True)
class Referred:
    """All values that a column can hold beside NULL are in a column of another table."""

    table: tuple[str | None, str]
    column: str
    origin: str


PublicDomain = Listed | Range | Referred
"""What is known of a column's values without a look at its rows; ``origin`` says why, in words."""


@dataclass(frozen=True)
class Bounds:
    """Between what the values of a column are summed: what lies outside counts as the nearer end.

    ``grid``: the step to which a floating-point column is rounded.
    """

    low: Decimal
    high: Decimal
    origin: str
    grid: Decimal | None = None

    def __post_init__(self) -> None:
        if not (self.low.is_finite() and self.high.is_finite() and self.low <= self.high):
            raise ValueError("bounds are two finite numbers in order")
        if self.grid is not None and not (self.grid.is_finite() and self.grid > 0):
            raise ValueError("a grid is a finite step above 0")


@dataclass(frozen=True)
class Column:
    """One column of a table. ``domain`` and ``bounds``: by the schema or by the owner's word.

    ``computed``: its value is this expression over bare columns of the table, which itself has no
    such column.
    """

    name: str
    type: ColumnType
    nullable: bool = True
    domain: PublicDomain | None = None
    bounds: Bounds | None = None
    computed: Hashable | None = None


@dataclass(frozen=True)
class Table:
    """A physical table. ``keys`` hold column sets that are unique and never null.

    ``oid`` is the database's own number for it, ``parts`` those of the tables whose rows it shows
    too: its partitions and inheritance children, ``places`` those of its columns, where it has any.
    ``references``: its foreign keys, by the schema.
    ``index_leads``: columns in whose order an index reads the rows, where that has to be asked for.
    ``rows_per_unit``: how many of its rows may belong to one unit, which is what is protected.
    Where the catalog has a unit that owns rows of several tables: ``owners`` say whose a row is,
    and at most ``max_rows`` of a unit's rows are used.
    """

    name: str
    columns: tuple[Column, ...]
    keys: frozenset[frozenset[str]] = frozenset()
    private: bool = True
    schema: str | None = None
    oid: int | None = field(default=None, compare=False, repr=False)
    parts: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    places: tuple[int, ...] = field(default=(), compare=False, repr=False)
    references: tuple[Link, ...] = field(default=(), compare=False, repr=False)
    index_leads: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    rows_per_unit: int = 1
    owners: tuple[Owner, ...] = ()
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.rows_per_unit <= MOST_ROWS_PER_UNIT:
            raise UsageError(
                f"a unit of {self.label} has at least 1 row and at most {MOST_ROWS_PER_UNIT}"
            )
        if self.max_rows is not None and self.max_rows < 1:
            raise UsageError(f"of a unit at least 1 row of {self.label} is used")
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

    @property
    def links(self) -> tuple[Link, ...]:
        """All links between a row and its owners."""
        return tuple(link for owner in self.owners for link in owner.links)

    @property
    def bounded(self) -> bool:
        """Whether only so many rows of each unit are read.

        With several owners a row that is left out for one of them would let in a row of another.
        """
        return self.private and self.max_rows is not None and len(self.owners) == 1

    def column(self, name: str) -> Column:
        """The column called ``name``, which must exist."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.label} has no column {name}")

    def with_computed(self, columns: Iterable[Column]) -> Table:
        """This table with further columns that are computed from each row."""
        return replace(self, columns=(*self.columns, *columns))

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

    @property
    def label(self) -> str:
        """The name for people, with its schema."""
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Routine:
    """What the database says of the one function that has a name, in lower case.

    ``definition`` changes with everything that its result may depend on. ``problem``: why nobody
    can vouch that it depends on its arguments alone.
    """

    name: str
    takes: int
    definition: str = field(repr=False)
    problem: str | None = None


def one_routine(name: str, found: Sequence[Routine]) -> Routine:
    """The function of a name; which of several is called depends on the types of each call."""
    if len(found) == 1:
        return found[0]
    definitions = "\n".join(sorted(routine.definition for routine in found))
    return Routine(name, 0, definitions, "shares its name with other functions")


@dataclass(frozen=True)
class DeclaredFunction:
    """A function of the database that the owner vouches for.

    It has no side effects, and its result depends on its arguments alone. For some of them it may
    fail, and of a text that it returns nothing is known.
    """

    name: str
    takes: tuple[ColumnType, ...]
    returns: ColumnType
    routine: Routine

    def __str__(self) -> str:
        return f"{self.name}({', '.join(one.name for one in self.takes)}) -> {self.returns.name}"


@dataclass(frozen=True)
class Catalog:
    """The tables and views an analyst may name, and the dialect their SQL is written in.

    ``functions`` are those of the database that the owner vouches for, ``hidden`` names built-in
    ones in whose place the engine would call a function of the database. ``as_found`` is the
    catalog before the owner's declarations. ``unit``: who is protected, None for single rows.
    """

    dialect: str
    tables: tuple[Table, ...]
    views: tuple[View, ...] = ()
    search_path: tuple[str, ...] = ("main",)
    functions: tuple[DeclaredFunction, ...] = ()
    hidden: frozenset[str] = frozenset()
    unit: Unit | None = None
    as_found: Catalog | None = field(default=None, compare=False, repr=False)

    @property
    def entries(self) -> tuple[Table | View, ...]:
        """All tables, then all views."""
        return self.tables + self.views

    def declare(
        self,
        *,
        private: Iterable[str] | None = None,
        public: Iterable[str] = (),
        keys: Mapping[str, Iterable[Iterable[str]]] | None = None,
        rows_per_unit: Mapping[str, int] | None = None,
        domains: Mapping[str, PublicDomain] | None = None,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> Catalog:
        """The catalog as the owner declares it: a table not declared public is private.

        What is said of a column's values, by ``table.column``, replaces what the schema says.
        """
        private_tables = {self.named(name).identity for name in private or ()}
        public_tables = {self.named(name).identity for name in public}
        declared_keys: dict[tuple[str | None, str], list[Iterable[str]]] = {}
        for name, found in (keys or {}).items():
            declared_keys.setdefault(self.named(name).identity, []).extend(found)
        units = {self.named(n).identity: _unit(n, m) for n, m in (rows_per_unit or {}).items()}
        said = _said_of_columns(self, domains or {}, bounds or {})

        def declared(table: Table) -> Table:
            if table.identity in private_tables & public_tables:
                raise UsageError(f"table {table.label} is declared both private and public")
            table = replace(
                table,
                columns=tuple(
                    replace(c, **said.get((table.identity, c.name), {})) for c in table.columns
                ),
                private=table.identity not in public_tables,
                # What a file's form says about its units stands: a declaration only adds to it.
                rows_per_unit=max(units.get(table.identity, 1), table.rows_per_unit),
            )
            return table.with_keys(declared_keys.get(table.identity, ()))

        tables = tuple(declared(table) for table in self.tables)
        _require_public(tables, domains or {})
        return replace(self, tables=tables, as_found=self.as_found or self)

    def function(self, name: str) -> DeclaredFunction | None:
        """The declared function of this name."""
        return next((one for one in self.functions if one.name == name), None)

    def named(self, name: str) -> Table:
        """The one table that the owner means by ``name``: table, or schema.table.

        A name that fits several is refused, views included: making the wrong one public, or taking
        a key of one for the key of another, would break the promise without a word.
        """
        found = [t for t in self.tables if name in (t.name, t.label)]
        views = [v for v in self.views if name in (v.name, v.label)]
        if len(found) == 1 and not views:
            return found[0]
        if not found and views:
            raise UsageError(
                f"{name} is a view; declarations are about tables",
                hint="declare the tables that the view reads",
            )
        if found:
            labels = sorted([t.label for t in found] + [v.label for v in views])
            raise UsageError(
                f"{name} can mean several tables",
                hint=f"write one of {', '.join(labels)}",
                code="ambiguous_table",
            )
        raise UsageError(
            f"there is no table {name}",
            hint=f"the tables are {', '.join(sorted(t.label for t in self.tables)) or 'none'}",
        )

    def column_named(self, name: str) -> tuple[Table, Column]:
        """The one column that the owner means by ``name``: table.column, or schema.table.column."""
        found = [
            (table, column, whole)
            for table in self.tables
            for column in table.columns
            for whole in {table.name, table.label}
            if name == f"{whole}.{column.name}"
        ]
        if len(found) == 1:
            table, column, whole = found[0]
            self.named(whole)
            return table, column
        if found:
            labels = sorted(f"{table.label}.{column.name}" for table, column, _ in found)
            raise UsageError(
                f"{name} can mean several columns",
                hint=f"write one of {', '.join(labels)}",
                code="ambiguous_table",
            )
        whole, dot, last = name.rpartition(".")
        if not dot:
            raise UsageError(f"{name!r} is not the name of a column", hint="write TABLE.COLUMN")
        table = self.named(whole)
        names = ", ".join(column.name for column in table.columns)
        raise UsageError(f"{table.label} has no column {last}", hint=f"it has {names}")


def _said_of_columns(
    catalog: Catalog, domains: Mapping[str, PublicDomain], bounds: Mapping[str, Bounds]
) -> dict[tuple[tuple[str | None, str], str], dict[str, Any]]:
    """The owner's word by column, as what it replaces."""
    said: dict[tuple[tuple[str | None, str], str], dict[str, Any]] = {}
    for kind, given in (("domain", domains), ("bounds", bounds)):
        for name, word in given.items():
            table, column = catalog.column_named(name)
            if isinstance(word, Bounds):
                _check_bounds(name, column, word)
            about = said.setdefault((table.identity, column.name), {})
            if kind in about:
                raise UsageError(f"the {kind} of {name} is given twice", hint="give it once")
            about[kind] = word
    return said


def _check_bounds(name: str, column: Column, bounds: Bounds) -> None:
    family = column.type.family
    if family not in (Family.INTEGER, Family.DECIMAL, Family.FLOAT):
        raise UsageError(
            f"{name} has no bounds: its type is {column.type.name}",
            hint="bounds are for columns of numbers",
        )
    if family is Family.FLOAT and bounds.grid is None:
        raise UsageError(
            f"the bounds of {name} need a step: its type {column.type.name} is floating point",
            hint="write [low, high, step], such as [0, 300, 0.1]: values are rounded to it",
        )
    if family is not Family.FLOAT and bounds.grid is not None:
        raise UsageError(
            f"the bounds of {name} have a step, but its type {column.type.name} is exact",
            hint="write [low, high]",
        )


def _require_public(tables: tuple[Table, ...], domains: Mapping[str, PublicDomain]) -> None:
    """Refuse a domain of the owner's that would be read from private rows, or does not compare."""
    known = {table.identity: table for table in tables}
    catalog = Catalog("", tables)
    for name, word in domains.items():
        if not isinstance(word, Referred):
            continue
        other, (_, column) = known[word.table], catalog.column_named(name)
        if other.private:
            raise UsageError(
                f"the domain of {name} is a column of {other.label}, which is private",
                hint=f"declare {other.label} public, or list the values",
            )
        if not column.type.joins_with(other.column(word.column).type):
            raise UsageError(
                f"{other.label}.{word.column} does not compare with {name}: "
                f"their types are {other.column(word.column).type.name} and {column.type.name}",
                hint="name a column of the same type",
            )


def _unit(table: str, rows: object) -> int:
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise UsageError(f"rows_per_unit of {table} is a whole number, 1 or more")
    return rows
