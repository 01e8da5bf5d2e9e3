"""What an owner says of a column's values, in the column's own type; what does not fit is told."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from sqlrs.catalog import (
    Bounds,
    Catalog,
    Column,
    Family,
    Listed,
    PublicDomain,
    Range,
    Referred,
    Table,
    Value,
)
from sqlrs.engines.checks import holds
from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.inputs.said_values import SaidBounds, SaidDomain, exact_number
from sqlrs.values import values_of

_WHOLE = re.compile(r"-?\d{1,39}", re.ASCII)
_DECIMAL = re.compile(r"-?(\d{1,30}\.?\d{0,30}|\.\d{1,30})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TRUTHS = {"true": True, "false": False}
_EXAMPLES = {
    Family.INTEGER: "whole numbers",
    Family.DECIMAL: "numbers",
    Family.TEXT: "texts",
    Family.DATE: "dates such as 2024-12-31",
    Family.TIMESTAMP: "dates with a time, without a zone",
    Family.BOOLEAN: "true and false",
}


def typed_domains(catalog: Catalog, said: Mapping[str, SaidDomain]) -> dict[str, PublicDomain]:
    """Each domain as values of its column's type; what is not of that type is a UsageError."""
    return {
        name: _domain(name, *catalog.column_named(name), one, catalog) for name, one in said.items()
    }


def typed_bounds(catalog: Catalog, said: Mapping[str, SaidBounds]) -> dict[str, Bounds]:
    """Each column's bounds."""
    return {
        name: Bounds(
            one.low,
            one.high,
            f"the owner's bounds of {_words(*catalog.column_named(name))}",
            one.grid,
        )
        for name, one in said.items()
    }


def _domain(
    name: str, table: Table, column: Column, said: SaidDomain, catalog: Catalog
) -> PublicDomain:
    origin = f"the owner's domain of {_words(table, column)}"
    if said.column is not None:
        other, found = catalog.column_named(said.column)
        return Referred(other.identity, found.name, origin)
    if said.ends is not None:
        if column.type.family not in (Family.INTEGER, Family.DATE):
            raise UsageError(
                f"{name} has no range: its type is {column.type.name}",
                hint="ranges are of whole numbers and dates; list the values",
            )
        low, high = (_value(name, column, one, written=said.written) for one in said.ends)
        if low > high:  # type: ignore[operator]  # both are whole numbers, or both dates
            raise UsageError(f"the domain of {name} begins after its end", hint="swap from and to")
        return Range(low, high, origin)
    values = tuple(_value(name, column, one, written=said.written) for one in said.values)
    # Under a collation 'a' can be 'A', and a row must not be in two groups.
    alike = _letters if values_of(column.type).collated else _itself
    if len({alike(value) for value in values}) < len(values):
        raise UsageError(f"the domain of {name} lists a value twice", hint="list each value once")
    return Listed(values, origin)


def _itself(value: Value) -> object:
    return value


def _letters(value: Value) -> object:
    """A text without what collations ignore: case, accents, forms of one letter."""
    apart = unicodedata.normalize("NFKD", str(value).casefold())
    return "".join(one for one in apart if unicodedata.category(one)[0] not in "MCZ")


def _words(table: Table, column: Column) -> str:
    return f"{table.name}.{column.name}"


def _value(name: str, column: Column, given: object, *, written: bool) -> Value:
    kind = column.type
    labels = column.domain if kind.family is Family.OTHER else None
    if given is None:
        raise UsageError(
            f"the domain of {name} lists no NULL",
            hint="NULL is a group of its own where the column may be null",
        )
    if isinstance(labels, Listed):
        if given in labels.values:
            return str(given)
        raise UsageError(
            f"a value in the domain of {name} is none of its type",
            hint=f"{kind.name} has {', '.join(map(str, labels.values[:20]))}",
        )
    if values_of(kind).padded and isinstance(given, str):
        return arguments.text(f"a value of {name}", given).rstrip(" ")
    if kind.family not in _EXAMPLES:
        raise UsageError(
            f"the values of {name} cannot be listed: its type is {kind.name}",
            hint="name a column of a public table: TABLE.COLUMN",
        )
    value = _read(kind.family, given, written=written)
    if value is None or not holds(kind, value):
        raise UsageError(
            f"a value in the domain of {name} does not fit its type {kind.name}",
            hint=f"give {_EXAMPLES[kind.family]}",
        )
    return value


def _read(family: Family, given: object, *, written: bool) -> Value | None:
    """The value in the family, or None. A written one is a text in any case."""
    text = given if isinstance(given, str) else None
    match family:
        case Family.TEXT:
            return None if text is None or "\0" in text else arguments.text("a value", text)
        case Family.INTEGER if written:
            return int(text) if text is not None and _WHOLE.fullmatch(text.strip()) else None
        case Family.DECIMAL if written:
            fits = text is not None and _DECIMAL.fullmatch(text.strip())
            return Decimal(text.strip()) if text is not None and fits else None
        case Family.BOOLEAN if written:
            return _TRUTHS.get((text or "").strip().lower())
        case Family.INTEGER:
            return given if isinstance(given, int) and not isinstance(given, bool) else None
        case Family.DECIMAL:
            numeric = isinstance(given, int | float | Decimal) and not isinstance(given, bool)
            return exact_number("a value of a domain", given) if numeric else None
        case Family.BOOLEAN:
            return given if isinstance(given, bool) else None
        case Family.DATE:
            return _date(given)
        case Family.TIMESTAMP:
            return given if isinstance(given, datetime) and given.tzinfo is None else None
    return None


def _date(given: object) -> date | None:
    if isinstance(given, str) and _DATE.fullmatch(given.strip()):
        try:
            return date.fromisoformat(given.strip())
        except ValueError:
            return None
    return given if isinstance(given, date) and not isinstance(given, datetime) else None
