"""Who owns the rows of a table, as it is written: columns with the id, or links to other tables.

Whether the columns and tables exist is looked at where the catalog is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.records import dataclass

# A shell takes > for a file, so that @ is another way to write the arrow.
_ARROW = re.compile("->|@")
_LINK = re.compile(r"(?P<columns>[^>()@]+)(->|@)(?P<table>[^>(),@]+)(\((?P<key>[^>()]+)\))?")
_HINT = (
    "write the column that holds the id, two of them as [src, dst], or a link to a table that has "
    "an owner: l_orderkey -> orders"
)


@dataclass(frozen=True)
class SaidOwner:
    """A column with the id of the owner; with a ``table``, columns that hold a key of it.

    ``key``: which columns of the table these are, where that was said.
    """

    columns: tuple[str, ...]
    table: str | None = None
    key: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = ", ".join(self.columns)
        if self.table is None:
            return text
        return f"{text} -> {self.table}" + (f"({', '.join(self.key)})" if self.key else "")


def said_owners(name: str, value: object) -> tuple[SaidOwner, ...]:
    """The owners that a text or a list of texts says: ``src, dst``, ``l_orderkey -> orders``.

    Two texts in a tuple are a link too: ``("l_orderkey", "orders")``.
    """
    if isinstance(value, SaidOwner):
        return (value,)
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, str) for one in value):
        columns, table = value
        return _written(name, f"{columns} -> {table}")
    given = tuple(value) if isinstance(value, list | tuple) else (value,)
    found = [
        owner
        for one in given
        for owner in ((one,) if isinstance(one, SaidOwner) else _written(name, one))
    ]
    if not found:
        raise UsageError(f"{name} names no owner", hint=_HINT)
    if len(set(found)) < len(found):
        raise UsageError(f"{name} names an owner twice", hint="name each owner once")
    return tuple(found)


def owners_by_table(name: str, value: object) -> dict[str, tuple[SaidOwner, ...]]:
    """The owners of each table's rows."""
    found = by_table(name, value, '{"visit": "patient"}')
    return {table: said_owners(f"{name}.{table}", one) for table, one in found.items()}


def rows_by_table(name: str, value: object) -> dict[str, int]:
    """How many rows of each table one unit may have."""
    found = by_table(name, value, '{"visit": 20}')
    return {
        table: arguments.whole_number(f"{name}.{table}", one, 1) for table, one in found.items()
    }


def unit_name(name: str, value: object) -> str:
    """The one unit, ``table.column`` or a word."""
    if isinstance(value, list | tuple | set | frozenset | Mapping):
        raise UsageError(
            f"{name}: there is one unit", hint='name the column of its ids, such as "patient.id"'
        )
    found = arguments.text(name, value).strip()
    if not found:
        raise UsageError(f"{name} is empty", hint='name a column of ids, such as "patient.id"')
    return found


def by_table(name: str, value: object, example: str) -> dict[str, object]:
    """What is said of each table; main.visit without quotes is a section main to TOML."""
    found: dict[str, object] = {}
    for one, inner in arguments.mapping(name, value, example).items():
        table = arguments.text(f"a table of {name}", one)
        if isinstance(inner, Mapping):
            below = by_table(f"{name}.{table}", inner, example)
            found |= {f"{table}.{rest}": said for rest, said in below.items()}
        else:
            found[table] = inner
    return found


def _written(name: str, value: object) -> tuple[SaidOwner, ...]:
    text = arguments.text(name, value)
    if not _ARROW.search(text):
        return tuple(SaidOwner((column,)) for column in _columns(name, text))
    link = _LINK.fullmatch(text.strip())
    if link is None:
        raise UsageError(f"{name}: {text!r} does not say who owns a row", hint=_HINT)
    columns, key = _columns(name, link["columns"]), _columns(name, link["key"] or "")
    if key and len(key) != len(columns):
        raise UsageError(
            f"{name}: {text!r} has another number of columns on each side",
            hint="write as many columns as the key has: order_id, line -> item(order_id, line)",
        )
    return (SaidOwner(columns, link["table"].strip(), key),)


def _columns(name: str, text: str) -> tuple[str, ...]:
    """The columns between commas; none of an empty text."""
    found = tuple(one.strip() for one in text.split(",")) if text else ()
    if not all(found):
        raise UsageError(f"{name}: a column has no name", hint=_HINT)
    return found
