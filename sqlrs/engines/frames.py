"""Data frames -> DuckDB tables: pandas, polars, Arrow, copied as they are when they are given.

A frame says its types, whatever its rows are. Where it does not (a column of Python objects in
pandas) the owner does, or the column is text. Nothing is rounded: a value that its type does not
hold is refused, with the column's name and without the value.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlglot import exp

from sqlrs.engines.file_schema import Ask, Declared, TextSchema, Typed, declared_columns, own_types
from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.trees.build import select_from, table_named
from sqlrs.trees.identifiers import column, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PACKAGES = frozenset({"pandas", "polars", "pyarrow"})
_GIVEN = "sqlrs_given_frame"
_OBJECTS = (str, int, float, Decimal, date, datetime, UUID)


def is_frame(value: object) -> bool:
    """Whether a value is a table of one of the known packages."""
    packages = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    return bool(packages & _PACKAGES) and _names(value) is not None


@dataclass(frozen=True)
class GivenFrame:
    """A frame that DuckDB reads under a name of its own, and the statement that copies it."""

    columns: Typed
    rows: exp.Select


def given_frame(
    connection: DuckDBPyConnection, table: str, frame: Any, types: Declared | None, ask: Ask
) -> GivenFrame:
    """The columns of a frame and the statement that reads them; end with ``forget``."""
    import duckdb

    names = _names(frame)
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise UsageError(
            f"the columns of tables[{table!r}] are not all named by texts",
            hint='rename them: df.columns = ["patient", "day"]',
        )
    if len({name.lower() for name in names}) != len(names):
        raise UsageError(f"tables[{table!r}] has two columns of one name; case does not matter")
    declared = own_types(table, declared_columns(table, types), ask) if types is not None else ()
    objects = _object_columns(frame)
    _require_declared_columns(table, names, declared)
    for name in objects:
        _require_one_kind(table, name, frame[name], dict(declared).get(name))
    with suppress(duckdb.Error, TypeError, ValueError, ImportError):
        connection.register(_GIVEN, frame)
    found = ask(exp.Describe(this=exp.select("*").from_(_GIVEN)))
    if not found:
        raise UsageError(
            f"tables[{table!r}] has a column of a type that DuckDB does not read",
            hint="leave it out, or convert it: df.astype(…), table.cast(…)",
        )
    read = [(str(row[0]), str(row[1])) for row in found]
    wanted = {name.lower(): kind for name, kind in declared}
    columns = [(name, wanted.get(name.lower(), _stored(kind))) for name, kind in read]
    parts = [
        _strict(table, name, have, kind)
        for (name, have), (_, kind) in zip(read, columns, strict=True)
    ]
    return GivenFrame(tuple(columns), exp.select(*parts).from_(_GIVEN))


def copied_arrow(
    connection: DuckDBPyConnection, name: str, rows: object, run: Callable[[str], object]
) -> None:
    """Copy a table of Arrow's as it is, whose types are known to be those of DuckDB."""
    # DuckDB's core reads Arrow's tables by what this package tells it.
    import duckdb  # noqa: F401

    copied = exp.Create(
        this=table_named(name),
        kind="TABLE",
        expression=select_from(table_named(_GIVEN), exp.Star()),
    )
    connection.register(_GIVEN, rows)
    try:
        run(copied.sql(dialect="duckdb"))
    finally:
        forget(connection)


def forget(connection: DuckDBPyConnection) -> None:
    """End what ``given_frame`` began."""
    import duckdb

    with suppress(duckdb.Error):
        connection.unregister(_GIVEN)


def _names(frame: Any) -> list[Any] | None:
    """The names of the columns, as the package says them."""
    with suppress(Exception):
        if type(frame).__name__ == "LazyFrame":
            return list(frame.collect_schema().names())
        schema: Any = getattr(frame, "schema", None)
        if hasattr(schema, "names") and not callable(schema.names):
            return list(schema.names)
        return list(frame.columns)
    return None


def _object_columns(frame: Any) -> list[str]:
    """The columns of pandas that may hold anything."""
    if type(frame).__module__.partition(".")[0] != "pandas":
        # A lazy frame of polars warns of what asking for its types costs.
        return []
    dtypes: Any = getattr(frame, "dtypes", None)
    if not hasattr(dtypes, "items"):
        return []
    return [name for name, dtype in dtypes.items() if str(dtype) == "object"]


def _require_declared_columns(table: str, names: list[str], declared: Typed) -> None:
    known = {name.lower() for name in names}
    for name, _ in declared:
        if name.lower() not in known:
            raise UsageError(f"tables[{table!r}] has no column {name}, for which a type is given")


def _require_one_kind(table: str, name: str, values: Any, kind: str | None) -> None:
    """Objects are texts unless a type is declared; any value of another kind is refused."""
    kinds = {type(value) for value in values[values.notna()]}
    if kind is None and kinds <= {str}:
        return
    if kind is not None and len(kinds) <= 1 and all(issubclass(one, _OBJECTS) for one in kinds):
        return
    found = ", ".join(sorted(one.__name__ for one in kinds))
    raise UsageError(
        f"column {name} of tables[{table!r}] holds Python objects of type {found}",
        hint=f"an object column holds texts; for one other kind declare its type, "
        f"types={{{table!r}: {{{name!r}: 'DATE'}}}}, or convert it: df.astype(…)",
    )


def _stored(kind: str) -> str:
    """The type of a column that is like the frame's own, but joins with those of other tables.

    The labels of an enumeration would be public; a frame's categories come from its rows.
    """
    if kind.startswith("ENUM("):
        return "VARCHAR"
    return "TIMESTAMP" if kind == "TIMESTAMP_NS" else kind


def _strict(table: str, name: str, have: str, kind: str) -> exp.Expression:
    """The column in its type; where a value would change, the statement fails."""
    value = column(name)
    if have == kind:
        return value
    schema = TextSchema(((name, kind),), None, ",")
    if have == "VARCHAR" and (form := schema.form(kind)) is not None:
        return schema.strictly(value, name, kind, form)
    there = exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb", udt=True))
    if have.startswith("ENUM("):
        return exp.Alias(this=there, alias=identifier(name))
    back = exp.Cast(this=there.copy(), to=exp.DataType.build(have, dialect="duckdb", udt=True))
    same = exp.NullSafeEQ(this=back, expression=value.copy())
    failed = exp.Anonymous(
        this="error", expressions=[exp.Literal.string(f"column {name} of {table}")]
    )
    kept = exp.case().when(same, there).else_(failed)
    return exp.Alias(this=kept, alias=identifier(name))
