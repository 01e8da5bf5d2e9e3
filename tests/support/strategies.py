"""Hypothesis strategies shared by the tests: small databases, and SQL of the accepted language.

- `databases(private=…)` draws a `TinyDatabase`: a catalog of 1 to 3 tables of 1 to 3 columns, with
  keys or none, private or public, and rows that obey the keys. Columns called a and b are INTEGER,
  c is VARCHAR, d is DATE with its infinities, whatever the table, so columns of one name can be
  joined.
- `queries(schema, features)` draws SQL text over a catalog. `Features` switches parts of the
  language on; whatever is drawn is accepted by `sqlrs.compiler.compile.compile_query`.
- `rows_of(table)` draws rows of one table.
- `load(database)` gives a DuckDB connection that holds the data, to run the SQL as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
from hypothesis import strategies as st

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from tests.support.special import DAYS

INTEGER = ColumnType(Family.INTEGER, "INTEGER")
TEXT = ColumnType(Family.TEXT, "VARCHAR")
DATE = DAYS.type
_TYPES = {"a": INTEGER, "b": INTEGER, "c": TEXT, "d": DATE}
_DOMAINS = {INTEGER: (0, 1, 2), TEXT: ("p", "q"), DATE: DAYS.values}
_NUMBERS = ["0", "1", "2", "3"]
_TEXTS = ["'p'", "'q'", "'r'"]
_DATES = ["DATE '2024-02-28'", "'2024-02-29'", "DATE '2024-03-01'"]
_LITERALS = {INTEGER: _NUMBERS, TEXT: _TEXTS, DATE: _DATES}
Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = tuple[Any, ...]
Option = TypeVar("Option")


@dataclass(frozen=True)
class Features:
    """Which parts of the language `queries` may use beyond joins, filters and inequalities."""

    comparisons: bool = False
    generals: bool = False
    distinct: bool = False
    semi_joins: bool = False
    derived: bool = True
    max_tables: int = 3


ALL = Features(comparisons=True, generals=True, distinct=True, semi_joins=True)
"""The whole language."""


@dataclass(frozen=True)
class TinyDatabase:
    """A catalog and the rows of each table, by the table's identity."""

    catalog: Catalog
    rows: dict[tuple[str | None, str], list[Row]]

    @property
    def by_name(self) -> dict[str, list[Row]]:
        """The rows as the brute-force oracle wants them: these tables have no schema."""
        return {name: rows for (_, name), rows in self.rows.items()}


@st.composite
def schemas(draw: Draw, private: bool | None = None, keys: bool | None = None) -> Catalog:
    """Catalogs of 1 to 3 tables; ``private`` and ``keys`` fix what else is drawn."""
    tables = []
    for name in ["r", "s", "t"][: draw(st.sampled_from([2, 1, 3]))]:
        names = sorted(draw(st.sets(st.sampled_from("abcd"), min_size=1, max_size=3)))
        key = None
        if draw(st.booleans()) if keys is None else keys:
            key = draw(st.sets(st.sampled_from(names), min_size=1))
        nullable = {n for n in names if draw(st.booleans())} - (key or set())
        tables.append(
            Table(
                name,
                tuple(Column(n, _TYPES[n], n in nullable) for n in names),
                frozenset({frozenset(key)} if key else ()),
                private=draw(st.booleans()) if private is None else private,
            )
        )
    return Catalog("duckdb", tuple(tables))


@st.composite
def rows_of(draw: Draw, table: Table, max_rows: int = 5) -> list[Row]:
    """Rows of one table: NULLs where it allows them, duplicates where no key forbids them."""
    values = []
    for column in table.columns:
        domain = st.sampled_from(_DOMAINS[column.type])
        values.append(st.none() | domain if column.nullable else domain)
    # A size drawn first: left to themselves, lists are mostly short and joins mostly empty.
    size = draw(st.sampled_from([max_rows, max_rows // 2, 1, 0]))
    rows: list[Row] = draw(st.lists(st.tuples(*values), min_size=size, max_size=size))
    names = [column.name for column in table.columns]
    for key in table.keys:
        seen: dict[Row, Row] = {}
        for row in rows:
            seen.setdefault(tuple(row[names.index(c)] for c in sorted(key)), row)
        rows = list(seen.values())
    return rows


@st.composite
def databases(
    draw: Draw, private: bool | None = None, keys: bool | None = None, max_rows: int = 5
) -> TinyDatabase:
    """A schema and rows that fit it."""
    catalog = draw(schemas(private, keys))
    rows = {t.identity: draw(rows_of(t, max_rows)) for t in catalog.tables}
    return TinyDatabase(catalog, rows)


def load(database: TinyDatabase) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the data, without its keys: the rows already obey them."""
    connection = duckdb.connect()
    for table in database.catalog.tables:
        columns = ", ".join(f'"{c.name}" {c.type.name}' for c in table.columns)
        connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
        marks = ", ".join("?" for _ in table.columns)
        for row in database.rows[table.identity]:
            connection.execute(f'INSERT INTO "{table.name}" VALUES ({marks})', list(row))
    return connection


def queries(schema: Catalog, features: Features = ALL) -> st.SearchStrategy[str]:
    """SQL text over the catalog's tables, of the accepted language."""
    return _queries(schema, features)


@st.composite
def _queries(draw: Draw, schema: Catalog, features: Features) -> str:
    return _Writer(draw, schema, features).query()


class _Writer:
    """Draws one query; ``columns`` are the qualified columns in scope with their types."""

    def __init__(self, draw: Draw, schema: Catalog, features: Features) -> None:
        self.draw = draw
        self.schema = schema
        self.features = features
        self.columns: list[tuple[str, ColumnType]] = []
        self.tables: list[Table] = []
        self.ctes: list[str] = []

    def pick(self, *options: Option) -> Option:
        picked: Option = self.draw(st.sampled_from(list(options)))
        return picked

    def chance(self) -> bool:
        return bool(self.draw(st.booleans()))

    def query(self) -> str:
        source = self.source()
        conditions = [self.condition() for _ in range(self.draw(st.integers(0, 3)))]
        if self.features.semi_joins and all(table.keys for table in self.tables) and self.chance():
            conditions.append(self.semi_join())
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        names = [name for name, _ in self.columns]
        form = self.pick("rows", "column", "distinct") if self.features.distinct else "rows"
        if form == "rows":
            head = self.pick("count(*)", "count(1)", f"count({self.pick(*names)})", "COUNT(*) AS n")
            text = f"SELECT {head} FROM {source}{where}"
        elif form == "column":
            head = self.pick(
                f"DISTINCT {self.pick(*names)}", f"DISTINCT ({self.pick(*names)}, {names[0]})"
            )
            text = f"SELECT count({head}) FROM {source}{where}"
        else:
            outputs = self.draw(
                st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
            )
            listed = ", ".join(f"{name} AS o{i}" for i, name in enumerate(outputs))
            text = f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM {source}{where}) AS d"
        return (f"WITH {', '.join(self.ctes)} " if self.ctes else "") + text

    def source(self) -> str:
        """FROM: tables joined in every way; ``visible`` are the names that need no alias."""
        text, visible = self.item(0)
        first = 0  # ON, USING and NATURAL see the tables since the last comma only.
        for i in range(1, self.pick(*range(self.features.max_tables, 0, -1))):
            before = len(self.columns)
            item, own = self.item(i)
            shared = [name for name in own if name in visible]
            ways = ["cross", "comma", "on"]
            if shared and all(visible.count(name) == 1 for name in shared):
                ways.append("using")
                if len(set(visible)) == len(visible):
                    ways.append("natural")
            way = self.pick(*ways)
            match way:
                case "using":
                    shared = [self.pick(*shared)]
                    text += f" JOIN {item} USING ({shared[0]})"
                case "natural":
                    text += f" NATURAL JOIN {item}"
                case "on":
                    joined = self.equality(self.columns[first:before], self.columns[before:])
                    text += f" {self.pick('JOIN', 'INNER JOIN')} {item} ON {joined}"
                case "cross":
                    text += f" CROSS JOIN {item}"
                case "comma":
                    text += f", {item}"
                    first, visible = before, []
            merged = shared if way in ("using", "natural") else []
            visible += [name for name in own if name not in merged]
        return text

    def item(self, number: int) -> tuple[str, list[str]]:
        table = self.pick(*self.schema.tables)
        alias = f"t{number}"
        names = [column.name for column in table.columns]
        self.tables.append(table)
        own = [(f"{alias}.{c.name}", c.type) for c in table.columns]
        self.columns += own
        form = self.pick("plain", "as", "derived", "cte") if self.features.derived else "plain"
        if form in ("derived", "cte"):
            inside = [(f"i.{c.name}", c.type) for c in table.columns]
            where = f" WHERE {self.filter(inside)}" if self.chance() else ""
            listed = self.pick("*", ", ".join(name for name, _ in inside))
            body = f"SELECT {listed} FROM {table.name} i{where}"
            if form == "derived":
                return f"({body}) {alias}", names
            self.ctes.append(f"w{number} AS ({body})")
            return f"w{number} AS {alias}", names
        return f"{table.name} {'AS ' if form == 'as' else ''}{alias}", names

    def equality(
        self, left: list[tuple[str, ColumnType]], right: list[tuple[str, ColumnType]]
    ) -> str:
        pairs = [(x, y) for x, t in left for y, u in right if t == u]
        return "{} = {}".format(*self.pick(*pairs)) if pairs else "TRUE"

    def condition(self) -> str:
        forms: list[Callable[[], str]] = [self.between_columns, lambda: self.filter(self.columns)]
        if self.features.comparisons:
            forms.append(self.comparison)
        if self.features.generals:
            forms.append(self.general)
        return self.pick(*forms)()

    def between_columns(self) -> str:
        one, kind = self.pick(*self.columns)
        other = self.pick(*[name for name, t in self.columns if t == kind])
        return self.pick(
            f"{one} = {other}", f"{one} <> {other}", f"{one} != {other}", f"NOT ({one} = {other})"
        )

    def filter(self, columns: list[tuple[str, ColumnType]]) -> str:
        name, kind = self.pick(*columns)
        number, text, day = (self.pick(*literals) for literals in (_NUMBERS, _TEXTS, _DATES))
        if kind is DATE:
            return self.pick(
                f"{name} = {day}", f"{name} <> {day}", f"{name} IS NULL", f"{name} IS NOT NULL",
                f"({name} > {day} OR {name} IS NULL)", f"{name} < {day}", f"{name} >= {day}",
            )  # fmt: skip
        if kind is TEXT:
            return self.pick(
                f"{name} = {text}", f"{name} <> {text}", f"{name} LIKE '%p%'", f"{name} IS NULL",
                f"{name} IS NOT NULL", f"({name} = {text} OR {name} IS NULL)",
                f"lower({name}) = {text}", f"{name} NOT IN ({text}, 'p')",
                f"coalesce({name}, 'p') = {text}",
            )  # fmt: skip
        return self.pick(
            f"{name} = {number}", f"{number} = {name}", f"{name} <> {number}",
            f"{name} IN ({number}, 1)", f"{name} NOT IN ({number})", f"{name} IS NULL",
            f"{name} IS NOT NULL", f"({name} = 1 OR {name} > {number})", f"{name} % 2 = 1",
            f"NOT ({name} = {number} OR {name} = 2)", f"{name} = {number} + 1", f"{name} = 1.5",
            f"abs({name} - 2) < {number}", f"CASE WHEN {name} = {number} THEN TRUE ELSE FALSE END",
        )  # fmt: skip

    def comparison(self) -> str:
        one, kind = self.pick(*self.columns)
        operator = self.pick("<", "<=", ">", ">=")
        other = self.pick(
            *[name for name, t in self.columns if t == kind],
            *_LITERALS[kind],
        )
        low, high = ("1", "2") if kind is INTEGER else _LITERALS[kind][:2]
        return self.pick(
            f"{one} {operator} {other}", f"{other} {operator} {one}",
            f"NOT {one} {operator} {other}", f"{one} BETWEEN {low} AND {other}",
            f"{one} BETWEEN {other} AND {high}",
        )  # fmt: skip

    def general(self) -> str:
        one, kind = self.pick(*self.columns)
        other = self.pick(*[name for name, t in self.columns if t == kind])
        if kind is DATE:
            return self.pick(
                f"({one} < {other} OR {one} IS NULL)", f"{one} IS DISTINCT FROM {other}"
            )
        if kind is TEXT:
            return self.pick(
                f"{one} || {other} <> 'pq'", f"({one} < {other} OR {one} IS NULL)",
                f"{one} IS DISTINCT FROM {other}",
            )  # fmt: skip
        return self.pick(
            f"{one} + {other} < {self.pick(*_NUMBERS)}", f"{one} % 2 = {other} % 2",
            f"({one} < {other} OR {one} IS NULL)", f"{one} * {other} <> 2",
            f"{one} IS DISTINCT FROM {other}", f"NOT ({one} BETWEEN 1 AND {other})",
        )  # fmt: skip

    def semi_join(self) -> str:
        table = self.pick(*self.schema.tables)
        inside = [(f"e.{c.name}", c.type) for c in table.columns]
        pairs = [(x, y) for x, t in self.columns for y, u in inside if t == u]
        extra = f" AND {self.filter(inside)}" if self.chance() else ""
        if not pairs:
            return f"EXISTS (SELECT 1 FROM {table.name} e WHERE TRUE{extra})"
        outer, inner = self.pick(*pairs)
        operator = self.pick("=", "<>") if not self.features.comparisons else self.pick("=", "<")
        return self.pick(
            f"EXISTS (SELECT 1 FROM {table.name} e WHERE {inner} {operator} {outer}{extra})",
            f"{outer} IN (SELECT {inner} FROM {table.name} e WHERE TRUE{extra})",
            f"EXISTS (SELECT * FROM {table.name} e WHERE {inner} = {outer}{extra})",
        )
