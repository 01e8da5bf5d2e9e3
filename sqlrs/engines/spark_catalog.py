"""What Spark says of tables, views and types -> catalog."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table, View
from sqlrs.dialects.spark_text import spark_text
from sqlrs.engines.base import Row
from sqlrs.errors import UsageError
from sqlrs.records import dataclass

Run = Callable[[exp.Expr], list[Row]]

_INTEGERS = {"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT"}
_FAMILIES = {
    "float": Family.FLOAT,
    "double": Family.FLOAT,
    "string": Family.TEXT,
    "date": Family.DATE,
    # A moment, which the session's zone shows as a day and a time.
    "timestamp": Family.TIMESTAMP_TZ,
    "timestamp_ntz": Family.TIMESTAMP,
    "boolean": Family.BOOLEAN,
    "binary": Family.OTHER,
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_VARCHAR = re.compile(r"varchar\(\d+\)")
_COLLATED = re.compile(r"string collate (\w+)", re.IGNORECASE)
_BINARY = "UTF8_BINARY"
_WRITTEN_AS = "__CHAR_VARCHAR_TYPE_STRING"
# What tells a table from another one of its name.
_SINCE = ("Created Time:", "Location:")


def spark_type(text: str) -> ColumnType:
    """The column type for a type's name, as Spark itself writes it.

    CHAR(n) is filled with blanks when it is read, at some places and not at others: it is no type
    to ask for, nor are those that Spark cannot compare or that are not listed here.
    """
    name = text.lower()
    if name in _INTEGERS:
        return ColumnType(Family.INTEGER, _INTEGERS[name])
    if name in _FAMILIES:
        return ColumnType(_FAMILIES[name], name.upper())
    if _VARCHAR.fullmatch(name):
        return ColumnType(Family.TEXT, "STRING")
    if _DECIMAL.fullmatch(name):
        return ColumnType(Family.DECIMAL, name.upper())
    if collated := _COLLATED.fullmatch(text):
        if collated[1].upper() == _BINARY:
            return ColumnType(Family.TEXT, "STRING")
        # It may take different texts for equal ones.
        return ColumnType(Family.OTHER, "STRING", collated[1].upper())
    return ColumnType(Family.OPAQUE, text)


def columns_of(schema: Any) -> tuple[Column, ...]:
    """The columns of a data frame's schema. No constraint is relied on: all may be NULL."""
    return tuple(
        Column(
            str(field.name),
            spark_type(str(field.metadata.get(_WRITTEN_AS) or field.dataType.simpleString())),
        )
        for field in schema.fields
    )


@dataclass(frozen=True)
class SparkRelation:
    """A name in Spark's own catalog; ``database`` is None for a temporary view.

    ``said`` is all that the catalog says of it: columns, where it is, when it was made.
    """

    database: str | None
    name: str
    said: str = field(default="", compare=False, repr=False)

    @property
    def label(self) -> str:
        """The name with its database."""
        return ".".join(filter(None, (self.database, self.name)))

    @property
    def made(self) -> int | None:
        """A number that another table of the name does not have; None of a temporary view."""
        lines = [line for line in self.said.splitlines() if line.startswith(_SINCE)]
        if self.database is None or not lines:
            return None
        return int.from_bytes(sha256("\n".join(lines).encode()).digest()[:7])


def named(*parts: str | None) -> exp.Table:
    """A table by the parts of its name, outermost first."""
    names = [exp.to_identifier(part, quoted=True) for part in parts if part is not None]
    return exp.Table(this=names[-1], db=names[-2] if len(names) > 1 else None)


def databases(run: Run) -> tuple[str, ...]:
    """The databases of the current catalog."""
    return tuple(
        sorted(str(row[0]) for row in run(exp.Command(this="SHOW", expression="DATABASES")))
    )


def listed_in(database: str, run: Run) -> Iterator[SparkRelation]:
    """The tables and views of a database, and the temporary views, which it is shown with."""
    place = spark_text(exp.to_identifier(database, quoted=True))
    asked = exp.Command(this="SHOW", expression=f"TABLE EXTENDED IN {place} LIKE '*'")
    for space, name, temporary, said in run(asked):
        yield SparkRelation(None if temporary else str(space), str(name), str(said))


def details(relation: SparkRelation, run: Run) -> dict[str, str]:
    """What DESCRIBE EXTENDED says of a table or view as a whole, columns aside."""
    place = spark_text(named(relation.database, relation.name))
    rows = run(exp.Command(this="DESCRIBE", expression=f"TABLE EXTENDED {place}"))
    heads = [i for i, row in enumerate(rows) if str(row[0]).startswith("# Detailed")]
    behind = rows[heads[-1] + 1 :] if heads else []
    return {str(name): str(value) for name, value, *_ in behind}


def view_of(
    relation: SparkRelation, said: Mapping[str, str], columns: Sequence[str]
) -> View | None:
    """The view with its text and the names of its columns.

    None where a name in it would be looked up in another database than its own.
    """
    space = said.get("View Catalog and Namespace", "").replace("`", "").split(".")
    if "View Text" not in said:
        return None
    if space[-1] != relation.database and not _names_databases(said["View Text"]):
        return None
    shown = ", ".join(spark_text(exp.to_identifier(name, quoted=True)) for name in columns)
    text = f"SELECT {shown} FROM ({said['View Text']}) AS `shown`({shown})"
    return View(relation.name, text, relation.database)


def _names_databases(text: str) -> bool:
    """Whether every table in a view's text stands with its database."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except (SqlglotError, RecursionError):
        return False
    return all(table.args.get("db") for table in tree.find_all(exp.Table))


def settings_of_view(relation: SparkRelation, run: Run) -> Mapping[str, str]:
    """What was set in the session that created a view: Spark reads its text under these."""
    place = spark_text(named(relation.database, relation.name))
    rows = run(exp.Command(this="DESCRIBE", expression=f"TABLE EXTENDED {place} AS JSON"))
    found = json.loads(str(rows[0][0])).get("view_creation_spark_configuration", {})
    return {str(name): str(value) for name, value in found.items()}


def catalog_of(
    tables: Iterable[Table], views: Iterable[View], current: str, functions: frozenset[str]
) -> Catalog:
    """The catalog, if no two tables have one name."""
    found = tuple(tables)
    names = [(table.schema or current, table.name.lower()) for table in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(
            f"two tables are called {name[1]}",
            hint="a temporary view or a file hides a table of the database: give it another name",
        )
    return Catalog("spark", found, tuple(views), (current,), hidden=functions)
